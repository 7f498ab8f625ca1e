package zq

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// How long a stopping consumer waits for Redis to take its last outcomes, and then the claims it gives back.
const lastWords = 5 * time.Second

// DrainError says that a consumer stopped while handlers were still at work, deaf to their contexts. Their
// messages were given back and will run again; their goroutines live until they return.
type DrainError struct{ Running int }

func (e *DrainError) Error() string {
	return fmt.Sprintf("zq: %d handlers did not return; their messages were given back", e.Running)
}

// drain ends the session: no new claims, handlers finish within the drain time, then their contexts end, then
// their messages are taken from them; outcomes are recorded as long as Redis answers. hurry skips the waits.
func (s *session) drain(hurry <-chan struct{}) error {
	s.end(nil)
	s.claimer.Go(s.rouse)
	claimed, done := make(chan struct{}), make(chan struct{})
	go func() { // ends with the last handler; a deaf one keeps it, and is reported
		s.claimer.Wait()
		close(s.work)
		close(claimed)
		s.workers.Wait()
		close(done)
	}()
	if !waitFor(done, s.cfg.DrainTime, hurry) {
		s.kill(ErrShutdown)
		waitFor(done, s.cfg.Grace, hurry)
	}
	waitFor(claimed, lastWords, nil) // what is being claimed is given back with the rest
	close(s.calm)
	s.sweeping.Wait()
	running := s.abandonAll()
	s.endSettling()
	if waitGroup(&s.settling, lastWords) {
		s.giveUp()
	}
	s.cut()
	s.settling.Wait()
	s.beating.Wait()
	s.kill(ErrShutdown)
	if s.own {
		_ = s.rdb.Close()
	}
	if running > 0 {
		return &DrainError{Running: running}
	}
	return nil
}

// giveUp returns what the claims still hold, and what a claim may hold whose reply never came.
func (s *session) giveUp() {
	ctx, cancel := context.WithTimeout(s.io, lastWords)
	defer cancel()
	var cids []string
	for _, c := range s.held.all() {
		cids = append(cids, c.cid)
	}
	select {
	case cid := <-s.doubt:
		cids = append(cids, cid)
	default:
	}
	// A marker may have been taken by the blocked call that was cut off: somebody else must look. A store that is
	// full refuses this write, but not those below.
	err := s.rdb.ZAdd(ctx, s.keys.Wake, redis.Z{Member: "w"}).Err()
	if err != nil {
		s.log.trouble("give claims back", err)
	}
	if err != nil && !redis.HasErrorPrefix(err, "OOM ") {
		return
	}
	for _, cid := range cids {
		call := script.SettleCall{CID: cid, GiveUp: true, DeadKeep: s.cfg.DeadRetention, DeadMax: s.cfg.DeadMax, DoneMax: s.cfg.DedupeMax}
		if _, err := s.scripts.Settle(ctx, s.rdb, s.keys, &call); err != nil {
			s.log.trouble("give claims back", err)
			return // their leases end by themselves
		}
	}
}

// waitFor waits for done; false after d, or when hurry is closed first.
func waitFor(done <-chan struct{}, d time.Duration, hurry <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
	case <-hurry:
	}
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// waitGroup waits for wg; false after d.
func waitGroup(wg *sync.WaitGroup, d time.Duration) bool {
	done := make(chan struct{})
	go func() { // ends with wg, which the caller waits for in any case
		wg.Wait()
		close(done)
	}()
	return waitFor(done, d, nil)
}
