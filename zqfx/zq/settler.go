package zq

import (
	"time"

	"github.com/zqueue/zqueue/zqfx/zq/internal/redo"
	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// settler records outcomes: of one claim at a time, in the order in which they were decided. While a call is
// under way the next ones gather, so that the group grows with the load and alone an outcome goes at once.
func (s *session) settler() {
	for {
		select {
		case c := <-s.dirty:
			s.flush(c)
		case <-s.last: // nobody decides anything any more; only what waits is left
			for {
				select {
				case c := <-s.dirty:
					s.flush(c)
				default:
					return
				}
			}
		}
	}
}

func (s *session) flush(c *claim) {
	for batch := c.next(); len(batch) > 0; batch = c.next() {
		s.settle(c, batch)
	}
}

// settle records a batch, again and again until Redis answers or the lease is over.
func (s *session) settle(c *claim, batch []outcome) {
	call := s.settleCall(c, batch)
	pace := redo.New(10*time.Millisecond, time.Second)
	for {
		began := time.Now()
		got, err := s.scripts.Settle(s.io, s.rdb, s.keys, &call.SettleCall)
		s.observeSettle(batch, began, err)
		if err == nil {
			s.log.well("settle")
			s.answered(c, batch, call.order, got)
			return
		}
		s.failed("settle", err)
		if c.isLost() || c.overdue(time.Now()) || pace.Wait(s.io) != nil {
			break
		}
	}
	s.log.moot("settle")
	for i := range batch {
		batch[i].tell(script.CodeLost)
	}
	if s.io.Err() == nil {
		c.lose()
	}
}

// settleCall sorts a batch the way the script takes it; order gives the place in batch of each outcome.
type settleCall struct {
	script.SettleCall
	order []int
}

func (s *session) settleCall(c *claim, batch []outcome) settleCall {
	call := settleCall{SettleCall: script.SettleCall{
		CID: c.cid, DeadKeep: s.cfg.DeadRetention, DeadMax: s.cfg.DeadMax, DoneMax: s.cfg.DedupeMax,
	}}
	var windowed, others []int
	for i := range batch {
		switch o := &batch[i]; {
		case o.other != nil:
			call.Others, others = append(call.Others, *o.other), append(others, i)
		case o.keep > 0:
			call.Windowed, windowed = append(call.Windowed, script.Window{Member: o.member, Keep: o.keep}), append(windowed, i)
		default:
			call.Acks, call.order = append(call.Acks, o.member), append(call.order, i)
		}
	}
	call.order = append(append(call.order, windowed...), others...)
	return call
}

// answered tells those who wait, and accounts for what has left the claim.
func (s *session) answered(c *claim, batch []outcome, order []int, got script.Settled) {
	codes := make(map[int]int, len(got.Rest))
	lost := false
	for _, r := range got.Rest {
		if r.Index >= 0 && r.Index < len(order) {
			codes[order[r.Index]] = r.Code
			lost = lost || r.Code == script.CodeLost
		}
	}
	kept := batch[:0]
	for i := range batch {
		code, refused := codes[i]
		if !refused || code == script.CodeRepeat {
			code = applied
		}
		batch[i].tell(code)
		if code == applied {
			kept = append(kept, batch[i])
		}
	}
	s.count.settled.Add(int64(len(kept)))
	if lost {
		c.lose()
		return
	}
	c.recorded(kept)
}
