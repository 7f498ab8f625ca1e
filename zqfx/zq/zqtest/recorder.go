package zqtest

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// Recorder keeps the history of a queue under test and checks the promises on
// it. It takes plain values, so any code can feed it. The zero value is ready;
// it is safe for concurrent use, and must not be copied.
type Recorder struct {
	mu     sync.Mutex
	events []Event
	merged bool // some events came from another process
}

// Add appends an event; its place in the history is when Add is called.
func (r *Recorder) Add(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(e)
}

// AddLines adds the events among a child's lines of output (see [Event.Line])
// and returns how many there were. From then on the history is ordered by At:
// processes of one machine share its clock, while their output arrives as it
// may.
func (r *Recorder) AddLines(lines []string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, line := range lines {
		if e, ok := parseEvent(line); ok {
			r.add(e)
			r.merged = true
			n++
		}
	}
	return n
}

// Events is a copy of the history, in order.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := slices.Clone(r.events)
	if r.merged {
		slices.SortStableFunc(events, func(a, b Event) int { return a.At.Compare(b.At) })
	}
	return events
}

func (r *Recorder) add(e Event) {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	e.At = e.At.Round(0) // wall time alone compares across processes
	r.events = append(r.events, e)
}

// Violation is a broken promise that a check found.
type Violation struct {
	Check string // the check that found it: order, done, ack-final, once, one-holder
	Key   string // the ordering key, if it matters
	ID    string // the message
	Text  string // what happened, in a sentence
}

// String is the violation as a line for a test's log.
func (v Violation) String() string {
	if v.Key == "" {
		return v.Check + ": " + v.Text
	}
	return v.Check + ": key " + v.Key + ": " + v.Text
}

// NoViolations fails the test with one line for each violation, the first few
// of them if there are many. The test goes on.
func NoViolations(t testing.TB, found ...[]Violation) {
	t.Helper()
	const most = 20
	all := slices.Concat(found...)
	for _, v := range all[:min(len(all), most)] {
		t.Error(v)
	}
	if len(all) > most {
		t.Errorf("and %d violations more", len(all)-most)
	}
}
