package zq

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq/internal/redo"
	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// heart extends the leases of all claims every third of a lease. It has connections of its own, so that no
// blocked or busy call delays it.
func (s *session) heart() { s.everyThird(s.beat) }

// keeper looks after what other workers left behind as often, beside the heart, which must not wait for it.
func (s *session) keeper() { s.everyThird(s.upkeep) }

func (s *session) everyThird(do func(within time.Duration)) {
	every := s.cfg.Lease / 3
	within := max(every, 250*time.Millisecond)             // a short lease is no reason to cut a slow reply off
	for redo.Sleep(s.io, every-rand.N(every/8+1)) == nil { //nolint:gosec // jitter, not a secret
		do(within)
	}
}

// beat extends every lease, trying again until the next beat is due. What cannot be extended in time is
// lost: this process must assume that somebody else runs it.
func (s *session) beat(within time.Duration) {
	ctx, cancel := context.WithTimeout(s.io, within)
	defer cancel()
	pace := redo.New(5*time.Millisecond, 500*time.Millisecond)
	for {
		err := s.extend(ctx)
		if err == nil {
			s.log.well("heartbeat")
			return
		}
		s.failed("heartbeat", err)
		s.loseOverdue()
		if pace.Wait(ctx) != nil {
			return
		}
	}
}

func (s *session) extend(ctx context.Context) error {
	all := s.held.all()
	for len(all) > 0 {
		part := all[:min(len(all), stepMessages)]
		all = all[len(part):]
		sent := time.Now()
		cids := make([]string, len(part))
		byID := make(map[string]*claim, len(part))
		for i, c := range part {
			cids[i], byID[c.cid] = c.cid, c
		}
		got, err := s.scripts.Heartbeat(ctx, s.rdb, s.keys, s.cfg.Lease, script.Worker{}, cids)
		if err != nil {
			return err
		}
		for _, cid := range got.Lost {
			if c := byID[cid]; c != nil {
				c.lose()
				delete(byID, cid)
			}
		}
		for _, c := range byID {
			c.renew(sent)
		}
	}
	return nil
}

func (s *session) loseOverdue() {
	now := time.Now()
	for _, c := range s.held.all() {
		if c.overdue(now) {
			c.lose()
		}
	}
}

// upkeep reaps and promotes also while every slot is busy and nothing is claimed.
func (s *session) upkeep(within time.Duration) {
	if s.stopping() {
		return
	}
	ctx, cancel := context.WithTimeout(s.io, within)
	defer cancel()
	if _, _, err := s.scripts.Reap(ctx, s.rdb, s.keys, s.upkeepRules()); err != nil {
		s.failed("upkeep", err)
		return
	}
	s.log.well("upkeep")
}

// How much a claim or an upkeep does for the queue on the side.
const (
	promoteMost = 200
	reapMost    = 5
)

func (s *session) upkeepRules() script.Upkeep {
	return script.Upkeep{
		Promote: promoteMost, Reap: reapMost, MaxLosses: s.cfg.MaxLosses, OnDeath: s.cfg.OnDeath.wire(),
		DeadKeep: s.cfg.DeadRetention, DeadMax: s.cfg.DeadMax, DoneMax: s.cfg.DedupeMax, Lease: s.cfg.Lease,
	}
}
