package zq

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/internal/redo"
)

// askSleeper lets the sleeper block for a marker, unless it does already.
func (s *session) askSleeper() {
	if s.sleeper == nil {
		return
	}
	select {
	case s.sleepy <- struct{}{}:
	default:
	}
}

// sleepLoop blocks for the wake-up marker when the claimer is idle, in a client of its own: a blocked call
// holds its connection and does not obey a context. One marker wakes one consumer, so one that arrives when
// this consumer is busy is passed on.
func (s *session) sleepLoop() {
	defer close(s.awake)
	if s.sleeper == nil {
		return
	}
	pace := redo.New(50*time.Millisecond, 2*time.Second)
	for {
		select {
		case <-s.stop:
			return
		case <-s.sleepy:
		}
		got, err := s.sleeper.BZPopMin(s.io, blockedSlice, s.keys.Wake, s.rouseKey).Result()
		switch {
		case err == nil && got.Key == s.rouseKey:
			return
		case err == nil:
			pace.Reset()
			s.wakeUp()
		case errors.Is(err, redis.Nil):
			pace.Reset()
			s.log.well("wait") // an idle queue is healthy again though no message tells
		case s.stopping():
			return
		default:
			s.failed("wait", err)
			if s.waitPace(pace) {
				return
			}
			s.nudge() // a marker may have been lost with the reply
		}
	}
}

// How long a stopping consumer waits for its blocked call to end by a marker, before it closes the connection.
const rouseTime = time.Second

// rouse ends the blocked call of a consumer that stops. go-redis would not by a context, and to close the
// connection under it takes a marker along that may just have arrived, so that is the last resort.
func (s *session) rouse() {
	if s.sleeper == nil {
		return
	}
	ctx, cancel := context.WithTimeout(s.io, rouseTime)
	defer cancel()
	if err := s.rdb.ZAdd(ctx, s.rouseKey, redis.Z{Member: "w"}).Err(); err == nil {
		select {
		case <-s.awake:
		case <-ctx.Done():
		}
		_ = s.rdb.Del(context.WithoutCancel(ctx), s.rouseKey).Err() // if nobody was asleep; else it is gone
	}
	_ = s.sleeper.Close()
}

func (s *session) wakeUp() {
	s.log.well("wait")
	if s.idling.Load() {
		select {
		case s.woken <- struct{}{}:
		default:
		}
		return
	}
	if err := s.rdb.ZAdd(s.io, s.keys.Wake, redis.Z{Member: "w"}).Err(); err != nil {
		s.log.trouble("wait", err)
	}
}
