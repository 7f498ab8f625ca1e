package zq

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/zqueue/zqueue/zqfx/zq/internal/keys"
	"github.com/zqueue/zqueue/zqfx/zq/internal/member"
	"github.com/zqueue/zqueue/zqfx/zq/internal/redo"
	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// claimLoop keeps the slots fed until the session stops.
func (s *session) claimLoop() {
	for !s.stopping() {
		o := s.load.want(&s.cfg)
		if o.entries == 0 {
			s.pause(blockedSlice)
			continue
		}
		got, sent, cid, ok := s.claim(o)
		if !ok {
			return
		}
		took := time.Since(sent)
		if len(got.Messages) > 0 {
			s.log.state("claiming")
			s.dispatch(got, cid, sent, took)
			continue
		}
		s.idle(got)
	}
}

// claim asks for work under one id until it has an answer, so that a lost reply loses nothing.
func (s *session) claim(o order) (got script.Claimed, sent time.Time, cid string, ok bool) {
	cid = keys.ClaimID(uuid.New())
	pace := redo.New(20*time.Millisecond, 2*time.Second)
	doubt, first := false, time.Now()
	for {
		call := script.ClaimCall{
			CID: cid, Entries: o.entries, Messages: o.messages, PerKey: o.perKey, Lease: s.cfg.Lease,
			Suspects: !s.suspect.Load(), Upkeep: s.upkeepRules(),
		}
		sent = time.Now()
		got, err := s.scripts.Claim(s.io, s.rdb, s.keys, call)
		if err == nil {
			s.count.claims.Add(1)
			s.log.well("claim")
			if got.Status == "repeat" {
				sent = first // its lease began with a call whose reply was lost
			}
			return got, sent, cid, true
		}
		doubt = doubt || unsure(err)
		if err = wrap(err, "claim from "+s.queue); errors.Is(err, ErrNewerLayout) {
			s.count.errors.Add(1)
			s.end(err)
		} else {
			s.failed("claim", err)
		}
		if s.stopping() || s.waitPace(pace) {
			if doubt {
				s.doubt <- cid
			}
			return got, sent, cid, false
		}
	}
}

// waitPace waits for the next try; true if the session stopped meanwhile.
func (s *session) waitPace(p *redo.Pace) bool {
	t := time.NewTimer(p.Next())
	defer t.Stop()
	select {
	case <-s.stop:
		return true
	case <-t.C:
		return false
	}
}

// dispatch hands a claim to the slots: each message without a key alone, those of a key together.
func (s *session) dispatch(got script.Claimed, cid string, sent time.Time, took time.Duration) {
	c := newClaim(s, cid, got, sent)
	if len(got.Messages) == 1 && got.Messages[0].Record.Alone {
		c.alone = true // also in a repeated reply
	}
	if c.alone {
		s.suspect.Store(true)
	}
	s.held.add(c)
	s.count.claimed.Add(int64(len(got.Messages)))
	s.observeClaim(c, got, sent, took)
	for _, u := range units(c, got.Messages) {
		for i := range u.msgs {
			s.load.saw(len(u.msgs[i].Envelope))
		}
		s.load.units.Add(1)
		s.load.messages.Add(int64(len(u.msgs)))
		s.work <- u
	}
}

// units groups a claim's messages by key, in the order in which they came.
func units(c *claim, msgs []script.Taken) []*unit {
	out := make([]*unit, 0, len(msgs))
	byKey := map[string]*unit{}
	for i := range msgs {
		key := member.Parse(msgs[i].Member).Key
		if u := byKey[key]; u != nil && key != "" {
			u.msgs = append(u.msgs, msgs[i])
			continue
		}
		u := &unit{claim: c, key: key, msgs: msgs[i : i+1 : i+1]}
		if key != "" {
			byKey[key] = u
		}
		out = append(out, u)
	}
	return out
}

// idle waits until there may be something: a marker, the next due time, or a change in this process.
func (s *session) idle(got script.Claimed) {
	wait := blockedSlice
	if got.Status == "paused" {
		s.log.state("paused")
	} else {
		s.log.state("idle")
		if got.NextDue > 0 {
			due := time.Duration(got.NextDue-got.Now) * time.Microsecond
			wait = min(wait, max(due, time.Millisecond))
		}
	}
	s.idling.Store(true) // ahead of asking, or a marker that comes at once would be passed on, to nobody
	defer s.idling.Store(false)
	s.askSleeper()
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-s.stop:
	case <-t.C:
	case <-s.look:
	case <-s.woken:
	}
}

// pause waits until there is room for more.
func (s *session) pause(most time.Duration) {
	s.full.Store(true)
	defer s.full.Store(false)
	if s.load.want(&s.cfg).entries > 0 {
		return // room came up before anybody could see that it is waited for
	}
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-s.stop:
	case <-t.C:
	case <-s.look:
	}
}
