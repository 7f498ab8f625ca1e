package deadletter

import (
	"context"
	"math/rand/v2"
	"time"
)

// Pauses after a round that failed: doubling, less up to half at random.
const (
	troubleLeast = time.Second
	troubleMost  = time.Minute
)

// RequeueStats counts what a Requeue has done since it was made. Every number only grows.
type RequeueStats struct {
	Rounds   int64 // rounds, failed ones included
	Failed   int64 // rounds that ended with an error
	Looked   int64 // dead letters looked at, each time anew
	Replayed int64 // sent back to work
	Gone     int64 // that somebody else was quicker with
	Capped   int64 // kept back by MaxReplays alone, each time anew
}

// Run makes a round at once and then one every Every, until ctx ends, and returns nil. A round that fails is counted
// and tried again after a second, doubling to a minute, less up to half of it at random. The first failure is logged,
// and when it works again.
func (r *Requeue) Run(ctx context.Context) error {
	trouble := time.Duration(0) // the last pause after a failure, 0 when the last round was well
	for ctx.Err() == nil {
		pause := r.cfg.every - rand.N(r.cfg.every/4+1) //nolint:gosec // jitter, not a secret
		_, err := r.Once(ctx)
		switch {
		case ctx.Err() != nil: // that is why, if it failed at all
		case err != nil:
			if trouble == 0 {
				r.cfg.logger.Warn("deadletter: requeue fails", "error", err)
			}
			trouble = min(max(2*trouble, troubleLeast), troubleMost)
			pause = trouble - rand.N(trouble/2+1) //nolint:gosec // jitter, not a secret
		case trouble > 0:
			r.cfg.logger.Info("deadletter: requeue works again")
			trouble = 0
		}
		select {
		case <-ctx.Done():
		case <-r.cfg.after(pause):
		}
	}
	return nil
}

// Stats reads the counts.
func (r *Requeue) Stats() RequeueStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

func (r *Requeue) count(rep Report, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.stats
	s.Rounds++
	if err != nil {
		s.Failed++
	}
	s.Looked += int64(rep.Looked)
	s.Gone += int64(rep.Gone)
	s.Capped += int64(rep.Capped)
	if !r.cfg.dryRun {
		s.Replayed += int64(rep.Replayed)
	}
}
