package integration_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/zqueue/zqueue/middleware/idempotency"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// chronicle is all that is known of a trial of the application: what was sent to it, what its processes wrote down,
// and what lies in Redis at the end. Its checks need nothing else, so they can be tried on made-up ones.
type chronicle struct {
	queue    string
	seed     uint64
	sent     []sentOrder
	entries  []entry
	victim   string // the worker that was killed, "" for none
	victimAt time.Time
	payments map[int]int64
	records  map[int]idempotency.Record
	dead     map[string]string // reasons by id
}

// sentOrder is a message that has its receipt.
type sentOrder struct {
	ID, Key string
	Order   int
	Seq     int64
	Span    string // where it was made
	At      time.Time
}

// appRun is one run of a handler.
type appRun struct {
	start entry
	end   entry // zero if it has none
}

// story is what happened to one message, in order.
type story struct {
	sentOrder
	runs  []appRun
	skips []entry
}

// stories sorts the entries by message. It tells what belongs nowhere.
func (c *chronicle) stories() (all []*story, faults []string) {
	byID, ends := map[string]*story{}, map[string]entry{}
	for _, s := range c.sent {
		if byID[s.ID] != nil {
			faults = append(faults, "sent: "+s.ID+" twice")
			continue
		}
		byID[s.ID] = &story{sentOrder: s}
		all = append(all, byID[s.ID])
	}
	for _, e := range c.entries {
		if slices.Contains(runEnds, e.Saw) {
			ends[e.run()] = e
		}
	}
	for _, e := range c.entries {
		st := byID[e.ID]
		switch {
		case st == nil && e.Saw != sawConsumed:
			faults = append(faults, fmt.Sprintf("done: %s of %q, which nobody sent", e.Saw, e.ID))
		case e.Saw == sawStart:
			st.runs = append(st.runs, appRun{start: e, end: ends[e.run()]})
		case e.Saw == sawSkipped:
			st.skips = append(st.skips, e)
		case e.Saw != sawMarked && e.Saw != sawSpan && e.Saw != sawConsumed && !slices.Contains(runEnds, e.Saw):
			faults = append(faults, fmt.Sprintf("once: %s, %s", e.ID, e.Saw))
		}
	}
	return all, faults
}

// run tells a run from all others, also if no span tells them apart.
func (e entry) run() string { return fmt.Sprint(e.Worker, " ", e.ID, " ", e.Attempt, " ", e.Span) }

// check gives a line for each promise that is broken, with the promise's name ahead: sent, done, order, completion,
// one-holder, attempts, dead, once or span.
func (c *chronicle) check() []string {
	c.sort()
	all, faults := c.stories()
	faults = append(faults, c.historyFaults()...)
	faults = append(faults, completionFaults(all)...)
	faults = append(faults, c.deadFaults(all)...)
	for _, st := range all {
		faults = append(faults, c.runFaults(st)...)
	}
	faults = append(faults, c.onceFaults(all)...)
	return append(faults, c.spanFaults(all)...)
}

var opOf = map[string]zqt.Op{
	sawStart: zqt.Started, sawPaid: zqt.Succeeded, sawFailed: zqt.Failed, sawDead: zqt.Dead, sawReleased: zqt.Postponed,
}

// historyFaults has the kit's recorder look at the history: nothing lost, order by key, one run of a key at a time.
func (c *chronicle) historyFaults() []string {
	var events []zqt.Event
	for _, s := range c.sent {
		events = append(events, zqt.Event{Op: zqt.Enqueued, ID: s.ID, Key: s.Key, Seq: s.Seq, At: s.At})
	}
	for _, e := range c.entries {
		ev := zqt.Event{Op: opOf[e.Saw], ID: e.ID, Key: e.Key, Attempt: e.Attempt, Worker: e.Worker, At: e.At}
		switch {
		case e.Saw == sawSkipped: // a run of no length, as far as order goes
			ev.Op = zqt.Started
			events = append(events, ev)
			ev.Op = zqt.Succeeded
			events = append(events, ev)
		case ev.Op != "":
			events = append(events, ev)
		}
	}
	if c.victim != "" {
		events = append(events, zqt.Event{Op: zqt.Lost, Worker: c.victim, At: c.victimAt})
	}
	slices.SortStableFunc(events, func(a, b zqt.Event) int { return a.At.Compare(b.At) })
	rec := &zqt.Recorder{}
	for _, ev := range events {
		rec.Add(ev)
	}
	var faults []string
	for _, v := range slices.Concat(rec.CheckAllDone(), rec.CheckOrder(), rec.CheckOneHolder()) {
		faults = append(faults, v.String())
	}
	return faults
}

// decided is when the message's last outcome was; false if it has none.
func (st *story) decided() (time.Time, bool) {
	var at time.Time
	for _, r := range st.runs {
		if r.end.Saw == sawPaid || r.end.Saw == sawDead {
			at = r.end.At
		}
	}
	for _, e := range st.skips {
		if e.At.After(at) {
			at = e.At
		}
	}
	return at, !at.IsZero()
}

// completionFaults finds messages that were over before one that was enqueued earlier with their key. Those that
// die keep their place too.
func completionFaults(all []*story) []string {
	lanes := map[string][]*story{}
	for _, st := range all {
		lanes[st.Key] = append(lanes[st.Key], st)
	}
	var faults []string
	for key, lane := range lanes {
		slices.SortFunc(lane, func(a, b *story) int { return int(a.Seq - b.Seq) })
		var last *story
		var when time.Time
		for _, st := range lane {
			at, is := st.decided()
			if !is {
				continue // told as not done
			}
			if last != nil && at.Before(when) {
				faults = append(faults, fmt.Sprintf("completion: key %s: %s was over before %s", key, st.ID, last.ID))
			}
			last, when = st, at
		}
	}
	return faults
}

// deadFaults compares the dead letters with the lots.
func (c *chronicle) deadFaults(all []*story) []string {
	var faults []string
	known := map[string]bool{}
	for _, st := range all {
		known[st.ID] = true
		if want, got := lotOf(c.seed, st.Order).dies, c.dead[st.ID]; got != want {
			faults = append(faults, fmt.Sprintf("dead: %s died of %q, its lot was %q", st.ID, got, want))
		}
	}
	for id := range c.dead {
		if !known[id] {
			faults = append(faults, "dead: "+id+", which nobody sent")
		}
	}
	return faults
}
