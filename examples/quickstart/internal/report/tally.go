// Package report counts what became of every event and proves, from the history of the run, that none was
// lost, handled twice or handled out of its customer's order. It trusts nothing that the queue says about itself
// but which events it took.
package report

import (
	"sync"
	"time"

	"github.com/zqueue/zqueue/examples/quickstart/internal/events"
)

// Tally is told what happens and keeps the history. It is safe for concurrent use.
//
// The sender tells Malformed, Enqueuing, Duplicate, Refused and Sent; the handler tells Started and then Failed or
// Done before it returns, and the chain around it tells Skipped or Dead, so that the history has no later start
// before an earlier outcome.
type Tally struct {
	now func() time.Time

	mu      sync.Mutex
	sum     Summary
	byID    map[string]*entry
	records []*record // in the order of the file
	steps   []step
	names   map[string]bool // customers
	sent    bool
	waiting int           // accepted events without an outcome
	idle    chan struct{} // closed when sent and nothing is waiting; nil until somebody waits
	first   time.Time
	last    time.Time
}

// entry is the live side of a record: enough to count, while the judgement waits for the end.
type entry struct {
	record
	replays int
	came    bool // to a worker, in this run
	retried bool
	open    bool // counted in waiting
	decided bool // has an outcome, of its last replay if there was one
}

// New returns an empty tally. The clock is time.Now when nil.
func New(now func() time.Time) *Tally {
	if now == nil {
		now = time.Now
	}
	return &Tally{now: now, byID: make(map[string]*entry), names: make(map[string]bool)}
}

// Malformed counts a line that is not an event.
func (t *Tally) Malformed(line int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum.Read++
	t.sum.Malformed++
	if len(t.sum.MalformedLines) < maxFindings {
		t.sum.MalformedLines = append(t.sum.MalformedLines, line)
	}
}

// Enqueuing is told for every event of the file, in its order and before it is sent: a worker may start it
// before the sender has the reply. This order is what the handlers' order is held against.
func (t *Tally) Enqueuing(e events.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begin()
	t.sum.Read++
	t.names[e.Customer] = true
	en := t.entry(e)
	en.accepted++
	if !en.sent {
		en.sent = true
		t.records = append(t.records, &en.record)
	}
	t.reckon(en)
}

// Duplicate says that the queue knew the event already, from this run or an earlier one.
func (t *Tally) Duplicate(e events.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum.Duplicates++
	t.withdraw(e)
}

// Refused says that the queue did not take the event.
func (t *Tally) Refused(e events.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum.Refused++
	t.withdraw(e)
}

// Sent says that the input is at its end; Wait cannot end before.
func (t *Tally) Sent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent = true
	t.settle()
}

// Started says that a handler begins with the event. Attempt is the queue's count, from 1.
func (t *Tally) Started(e events.Event, attempt int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begin()
	en := t.note(opStarted, e)
	en.came = true
	if attempt < 2 || en.replays > 0 {
		return
	}
	t.sum.ExtraRuns++
	if !en.retried {
		en.retried = true
		t.sum.Retried++
	}
}

// Failed says that this attempt failed and that the event will be tried again, or is to become a dead letter.
func (t *Tally) Failed(e events.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note(opFailed, e)
}

// Done says that the handler succeeded.
func (t *Tally) Done(e events.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	en := t.note(opDone, e)
	if !en.decided {
		if en.replays > 0 {
			t.sum.ReplayedDone++
		} else {
			t.sum.Processed++
		}
	}
	t.decide(en)
}

// Skipped says that the queue delivered the event and that the handler was spared: an earlier run had done it.
func (t *Tally) Skipped(e events.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	en := t.note(opSkipped, e)
	en.came = true
	if !en.decided {
		t.sum.Skipped++
	}
	t.decide(en)
}

// Dead says that the event is a dead letter. Telling it twice, from the handler and from the queue's list of
// dead letters, counts once; telling it late is no violation of order.
func (t *Tally) Dead(e events.Event, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	en := t.note(opDead, e)
	if !en.decided {
		if en.replays > 0 {
			t.sum.ReplayedDead++
		} else {
			t.sum.Dead++
			t.sum.addReason(reason)
		}
	}
	t.decide(en)
}

// Replayed says that the dead letter goes back into the queue. Its next outcome is counted apart, and it may
// come after later events of its customer: it lost its place when it died.
func (t *Tally) Replayed(e events.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	en := t.note(opReplayed, e)
	en.replays++
	en.decided = false
	t.sum.Replayed++
	t.reckon(en)
}

// Summary judges the history so far. While events are waiting it calls them lost: ask when the run is over.
func (t *Tally) Summary() Summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sum.clone()
	s.Customers = len(t.names)
	s.Elapsed = max(t.last.Sub(t.first), 0)
	for _, en := range t.byID {
		switch {
		case en.accepted > 0:
			s.Accepted++
		case en.came:
			s.Left++
		}
	}
	v := judge(t.records, t.steps)
	s.OutOfOrder, s.Doubled, s.Lost, s.Findings = v.outOfOrder, v.doubled, v.lost, v.findings
	return s
}

func (t *Tally) begin() {
	if t.first.IsZero() {
		t.first = t.now()
		t.last = t.first
	}
}

func (t *Tally) entry(e events.Event) *entry {
	en := t.byID[e.ID()]
	if en == nil {
		en = &entry{record: record{id: e.ID(), customer: e.Customer, sequence: e.Sequence}}
		t.byID[en.id] = en
	}
	return en
}

func (t *Tally) note(o op, e events.Event) *entry {
	en := t.entry(e)
	t.steps = append(t.steps, step{op: o, rec: &en.record})
	return en
}

func (t *Tally) withdraw(e events.Event) {
	en := t.entry(e)
	en.accepted--
	t.reckon(en)
}

// decide marks the outcome. The clock stops at the last first outcome: a replay is not part of the run's speed.
func (t *Tally) decide(en *entry) {
	en.decided = true
	if en.replays == 0 {
		t.last = t.now()
	}
	t.reckon(en)
}
