package zqtest

import (
	"cmp"
	"fmt"
	"slices"
)

// CheckOrder finds handlers that started out of order. For every message with
// a key, from its Enqueued event:
//
//   - It starts only when each earlier message of its key, by (Score, Seq), that
//     was there in time is decided: Succeeded, Acked, Dead, Cancelled or Skipped.
//   - A decided message may run again, after a crash, as long as its outcome is
//     not recorded. Recorded it is by an Acked of its own or of a later message
//     of the key, for outcomes are recorded in order; and when a later message
//     runs again without it, for a crash re-runs from the first.
//
// Outcomes count only from the worker that started the message last: what a
// paused worker reports afterwards decides nothing. A message counts as there
// from its Enqueued event or its start, whichever comes first; one without an
// Enqueued event is not checked.
func (r *Recorder) CheckOrder() []Violation {
	events := r.Events()
	c := newOrderCheck(events)
	for i, e := range events {
		c.step(i, e)
	}
	return c.found
}

type orderCheck struct {
	byID  map[string]*turn
	found []Violation
}

func newOrderCheck(events []Event) *orderCheck {
	c := &orderCheck{byID: map[string]*turn{}}
	lanes := map[string]*turns{}
	for _, e := range events {
		if e.Op != Enqueued || e.Key == "" || c.byID[e.ID] != nil {
			continue
		}
		lane := lanes[e.Key]
		if lane == nil {
			lane = &turns{}
			lanes[e.Key] = lane
		}
		t := &turn{Event: e, lane: lane, claimed: -1, started: -1}
		c.byID[e.ID] = t
		lane.all = append(lane.all, t)
	}
	for _, lane := range lanes {
		slices.SortStableFunc(lane.all, func(a, b *turn) int {
			return cmp.Or(cmp.Compare(a.Score, b.Score), cmp.Compare(a.Seq, b.Seq))
		})
		for rank, t := range lane.all {
			t.rank = rank
		}
	}
	return c
}

// step moves the message of one event on.
func (c *orderCheck) step(i int, e Event) {
	if e.Op == Lost {
		c.lost(e)
		return
	}
	t := c.byID[e.ID]
	if t == nil {
		return // without a key, or never seen enqueued
	}
	switch e.Op {
	case Enqueued:
		if t.state == absent {
			t.arrive(i)
		}
	case Replayed:
		t.arrive(i)
	case Claimed:
		t.claimed = i
	case Started:
		c.started(i, e, t)
	case Skipped:
		t.skipped = true
	default:
		t.end(i, e)
	}
}

func (c *orderCheck) started(i int, e Event, t *turn) {
	if t.state == absent {
		t.enqueued = i // its producer has not got round to saying so
	}
	t.cut = i
	if t.claimed >= 0 {
		t.cut, t.claimed = t.claimed, -1
	}
	if t.state == final {
		c.report(t, fmt.Sprintf("%s started%s although its outcome, or a later message's, is recorded", t.ID, where(i, e)))
	}
	if first := t.blocker(); first != nil {
		c.report(t, fmt.Sprintf("%s started%s while %s, which goes before it, was %s", t.ID, where(i, e), first.ID, first.state))
	}
	t.settleBelow(t.started) // what did not come back with it is gone for good
	t.started, t.worker = i, e.Worker
	t.set(running)
}

// lost puts back what a dead worker was running.
func (c *orderCheck) lost(e Event) {
	for _, t := range c.byID {
		if t.state == running && t.worker == e.Worker && (e.ID == "" || e.ID == t.ID) {
			t.set(waiting)
		}
	}
}

func (c *orderCheck) report(t *turn, text string) {
	c.found = append(c.found, Violation{Check: "order", Key: t.Key, ID: t.ID, Text: text})
}
