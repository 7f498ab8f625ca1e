package ratelimit

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"
)

// watched is an outage on a clock of the test's own, and what it said.
type watched struct {
	outage
	clock time.Time
	told  []string
	log   bytes.Buffer
}

func newWatched() *watched {
	w := &watched{clock: time.Unix(1_700_000_000, 0)}
	w.outage = outage{
		now: func() time.Time { return w.clock },
		tell: func(err error) {
			if err == nil {
				w.told = append(w.told, "back")
			} else {
				w.told = append(w.told, err.Error())
			}
		},
		logger: slog.New(slog.NewTextHandler(&w.log, nil)),
	}
	return w
}

func (w *watched) lines(word string) int { return strings.Count(w.log.String(), word) }

// all expects that everybody may ask.
func (w *watched) all(t *testing.T) {
	t.Helper()
	for range 3 {
		if !w.ask() {
			t.Error("in reach, not all may ask")
		}
	}
}

// Each change is told and logged once, whatever number of messages meets it; the return says how long it took, and how
// many messages passed by.
func TestOutageTellsOfChangesOnce(t *testing.T) {
	t.Parallel()
	w := newWatched()
	for range 3 {
		for range 10 { // all on their way when it began
			w.failed(errors.New("away"), false)
			w.pass()
		}
		w.clock = w.clock.Add(5 * time.Second)
		w.failed(errors.New("still away"), false)
		w.pass()
		w.clock = w.clock.Add(5 * time.Second)
		for range 10 {
			w.answered()
		}
	}
	if want := slices.Repeat([]string{"away", "back"}, 3); !slices.Equal(w.told, want) {
		t.Errorf("told %q, want %q", w.told, want)
	}
	if w.lines("level=WARN") != 3 || w.lines("messages run unlimited") != 3 || w.lines("level=INFO") != 3 ||
		w.lines("after=10s messages=11") != 3 {
		t.Errorf("logged\n%s", &w.log)
	}
	w.failed(errors.New("away"), true)
	if w.lines("messages are postponed") != 1 {
		t.Errorf("logged\n%s", &w.log)
	}
}

// While it is out of reach one message a second asks, and nobody else; one that cannot wait for its answer leaves that
// to the next.
func TestOutageAsksOnceASecond(t *testing.T) {
	t.Parallel()
	w := newWatched()
	w.all(t)
	w.failed(errors.New("away"), false)
	asked := 0
	for range 1000 { // ten seconds
		w.clock = w.clock.Add(10 * time.Millisecond)
		if w.ask() {
			asked++
			if w.ask() {
				t.Error("two ask at once")
			}
			w.failed(errors.New("away"), false)
		}
	}
	if asked != 10 {
		t.Errorf("asked %d times in ten seconds", asked)
	}
	w.clock = w.clock.Add(time.Second)
	if !w.ask() {
		t.Error("a second later nobody may ask")
	}
	w.unknown()
	if !w.ask() || w.ask() {
		t.Error("after one that could not wait, not exactly one may ask")
	}
	w.answered()
	w.all(t)
	if w.told[len(w.told)-1] != "back" {
		t.Errorf("told %q", w.told)
	}
}

// An answer to a question from before the failure does not end the outage.
func TestOutageIgnoresAnOldAnswer(t *testing.T) {
	t.Parallel()
	w := newWatched()
	w.failed(errors.New("away"), false)
	w.answered()
	w.clock = w.clock.Add(999 * time.Millisecond)
	w.answered()
	if w.ask() || len(w.told) != 1 {
		t.Errorf("told %q", w.told)
	}
}

// Pauses grow with the outage, from a second to 30, and messages do not come back in step.
func TestOutagePauses(t *testing.T) {
	t.Parallel()
	for lasted, want := range map[time.Duration][2]time.Duration{
		0:                {time.Second, 2 * time.Second},
		2 * time.Second:  {time.Second, 2 * time.Second},
		10 * time.Second: {5 * time.Second, 10 * time.Second},
		time.Minute:      {15 * time.Second, 30 * time.Second},
		1e6 * time.Hour:  {15 * time.Second, 30 * time.Second},
	} {
		w := newWatched()
		w.failed(errors.New("away"), true)
		w.clock = w.clock.Add(lasted)
		seen := map[time.Duration]bool{}
		for range 100 {
			d := w.pass()
			if d < want[0] || d >= want[1] {
				t.Fatalf("%s after %s, want %s to %s", d, lasted, want[0], want[1])
			}
			seen[d] = true
		}
		if len(seen) < 90 {
			t.Errorf("a hundred pauses have %d lengths", len(seen))
		}
	}
}

// A hook that panics is said once and changes nothing.
func TestOutageHookPanics(t *testing.T) {
	t.Parallel()
	w := newWatched()
	w.tell = func(error) { panic("boom") }
	for range 3 {
		w.failed(errors.New("away"), false)
		w.clock = w.clock.Add(time.Second)
		w.answered()
	}
	if w.down || w.lines("a hook panicked") != 1 || w.lines("answers again") != 3 {
		t.Errorf("down: %t, logged\n%s", w.down, &w.log)
	}
}
