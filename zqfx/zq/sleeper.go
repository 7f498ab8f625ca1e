package zq

import (
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
		err := s.sleeper.BZPopMin(s.io, blockedSlice, s.keys.Wake).Err()
		switch {
		case err == nil:
			pace.Reset()
			s.wakeUp()
		case errors.Is(err, redis.Nil):
			pace.Reset()
		case s.stopping():
			return
		default:
			s.count.errors.Add(1)
			s.log.trouble("wait", err)
			if s.waitPace(pace) {
				return
			}
			s.nudge() // a marker may have been lost with the reply
		}
	}
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
