package integration_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/effect"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// nilError is an error that a nil pointer satisfies, and whose methods do not like that.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// unwrapper panics where errors.Is and errors.As look into it.
type unwrapper struct{ nilError }

func (e *unwrapper) Unwrap() error { return errors.New(e.text) }

type rogueError struct{}

func (rogueError) Error() string    { return "claims to be" }
func (rogueError) As(any) bool      { panic("As panics") }
func (rogueError) Is(error) bool    { panic("Is panics") }
func (e rogueError) String() string { panic("String panics") }

// rogues are handlers that end in every way but the good one.
var rogues = map[string]func() error{
	"panic":      func() error { panic("told to") },
	"panic nil":  func() error { panic(nil) },
	"panic err":  func() error { panic(errMixed) },
	"panic odd":  func() error { panic(rogueError{}) },
	"nil map":    func() error { var m map[string]int; m[strings.ToLower("X")] = 1; return nil }, //nolint:staticcheck // that is the case
	"goexit":     func() error { runtime.Goexit(); return nil },
	"typed nil":  func() error { var e *nilError; return e },
	"unwrap nil": func() error { var e *unwrapper; return e },
	"as panics":  func() error { return rogueError{} },
	"deep":       func() error { return fmt.Errorf("around %w", (*unwrapper)(nil)) },
	"joined":     func() error { return errors.Join(errMixed, rogueError{}) },
	"huge":       func() error { return errors.New(strings.Repeat("x", 1<<20)) },
	"not utf-8":  func() error { return errors.New("\xff\xfe\x00|\n") }, //nolint:revive // that is the case
}

// Whatever a handler does, it is charged for it, the message is tried again and ends as a dead letter with a
// text that says why; the consumer lives on with all its slots.
func TestDrainAfterRogueHandlers(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	const slots = 3
	g := newGate(t)
	c := x.start(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		if rogue := rogues[d.ID]; rogue != nil {
			return rogue()
		}
		g.pass()
		return nil
	}), zq.ConsumerConfig{Concurrency: slots, MaxAttempts: 2, RetryDelay: shortRetry})
	x.t.Cleanup(g.open)
	n := 0
	for id := range rogues {
		n++
		x.send(zq.Message{ID: id, Key: fmt.Sprint("k", n%4)})
	}
	zqt.Eventually(t, patience, func() bool { return int(x.depth().Dead) == n }, "they are all dead")
	for id := range rogues {
		l, err := x.look.DeadLetter(t.Context(), id)
		if err != nil || l.Reason != zq.ReasonAttempts || l.Attempts != 2 || id != "typed nil" && l.Error == "" {
			t.Errorf("%s: %v: %s after %d attempts: %.100s", id, err, l.Reason, l.Attempts, l.Error)
		}
	}
	for i := range slots {
		x.send(zq.Message{ID: fmt.Sprint("m-", i)})
	}
	zqt.Eventually(t, patience, func() bool { return g.inside.Load() == slots }, "every slot works")
	g.open()
	x.over(n+slots, n)
	x.stop(c)
	if s := c.Stats(); s.Running+s.Waiting != 0 || s.Started != int64(2*n+slots) {
		t.Errorf("stats %+v", s)
	}
}

// The application's own retry policy may panic, too.
func TestDrainAfterARogueRetryDelay(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	c := x.start(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		if d.Attempt == 1 {
			return errMixed
		}
		return nil
	}), zq.ConsumerConfig{RetryDelay: func(d *zq.Delivery, _ error) time.Duration {
		if d.ID == "huge" {
			return 1 << 62
		}
		panic("the policy panics")
	}})
	x.send(zq.Message{ID: "panics", Key: "k"})
	x.send(zq.Message{ID: "huge"})
	zqt.Eventually(t, patience, func() bool { return x.counters().Acked == 1 }, "the message was tried again")
	x.stop(c)
	x.healthy()
	info, err := x.look.Message(t.Context(), "huge")
	if err != nil || info.State != zq.StateRetry || time.Until(info.Due) < 24*time.Hour {
		t.Errorf("%+v, %v", info, err)
	}
}

// overrun is a consumer whose first run of "deaf" does not end.
type overrun struct {
	*trial
	g    *gate
	c    *zq.Consumer
	mu   sync.Mutex
	runs map[string][]int
	late error // of the deaf run's checkpoint, when it is back
}

func newOverrun(t *testing.T, cfg zq.ConsumerConfig) *overrun {
	t.Helper()
	o := &overrun{trial: newTrial(t), g: newGate(t), runs: map[string][]int{}}
	cfg.MaxRun, cfg.Grace, cfg.RetryDelay = 30*time.Millisecond, 30*time.Millisecond, shortRetry
	o.c = o.start(zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
		o.mu.Lock()
		first := len(o.runs[d.ID]) == 0
		o.runs[d.ID] = append(o.runs[d.ID], d.Attempt)
		o.mu.Unlock()
		if d.ID != "deaf" || !first {
			return nil
		}
		o.g.pass()
		if !errors.Is(context.Cause(ctx), zq.ErrTimeout) {
			t.Errorf("its context ended: %v", context.Cause(ctx))
		}
		err := d.Checkpoint(context.WithoutCancel(ctx), effect.Set("mark", "late"))
		o.mu.Lock()
		defer o.mu.Unlock()
		o.late = err
		return d.Effect(effect.Set("mark", "late"))
	}), cfg)
	t.Cleanup(o.g.open)
	return o
}

func (o *overrun) attempts(id string) []int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.runs[id])
}

// back lets the deaf run return, and checks that it changes nothing any more.
func (o *overrun) back() {
	o.t.Helper()
	before := o.counters()
	if s := o.c.Stats(); s.Taken != 1 || s.Late != 0 || s.Running != 1 {
		o.t.Errorf("before it is back: %+v", s)
	}
	o.g.open()
	zqt.Eventually(o.t, patience, func() bool { s := o.c.Stats(); return s.Late == 1 && s.Running == 0 }, "the deaf run is back")
	o.mu.Lock()
	defer o.mu.Unlock()
	if !errors.Is(o.late, zq.ErrLeaseLost) {
		o.t.Errorf("its checkpoint: %v", o.late)
	}
	if n, err := o.rdb.Exists(o.t.Context(), zq.EffectKey(o.queue, "mark")).Result(); err != nil || n != 0 {
		o.t.Errorf("it has left its mark: %v", err)
	}
	if after := o.counters(); after.Failed != before.Failed || after.Refused != before.Refused+1 {
		o.t.Errorf("counters went from %+v to %+v", before, after)
	}
}

// A handler that does not return after its maximum run time loses its message: the attempt is charged and
// another slot runs it. What it does later is refused. Its own slot is taken until then, and of use again.
func TestDrainOverrunLosesItsMessage(t *testing.T) {
	t.Parallel()
	o := newOverrun(t, zq.ConsumerConfig{Concurrency: 2, MaxAttempts: 3})
	o.send(zq.Message{ID: "deaf", Key: "k"})
	o.send(zq.Message{ID: "next", Key: "k"})
	zqt.Eventually(t, patience, func() bool { return o.counters().Acked == 2 }, "both are done, by the other slot")
	if ns := o.attempts("deaf"); !slices.Equal(ns, []int{1, 2}) || o.counters().Failed != 1 {
		t.Errorf("attempts %v, %+v", ns, o.counters())
	}
	o.back()
	o.over(2, 0)
	o.stop(o.c)
}

// With one slot nothing else runs while the deaf handler is at it: no more than Concurrency ever do.
func TestDrainOverrunKeepsItsSlot(t *testing.T) {
	t.Parallel()
	o := newOverrun(t, zq.ConsumerConfig{Concurrency: 1, MaxAttempts: 3})
	o.send(zq.Message{ID: "deaf"})
	zqt.Eventually(t, patience, func() bool { return o.c.Stats().Taken == 1 }, "its message is taken")
	o.send(zq.Message{ID: "other"})
	zqt.Eventually(t, patience, func() bool { d := o.depth(); return d.Pending+d.Delayed == 2 && d.Running == 0 },
		"both wait for a slot")
	if n := len(o.attempts("other")) + len(o.attempts("deaf")); n != 1 {
		t.Errorf("%d runs", n)
	}
	o.back()
	o.over(2, 0)
	o.stop(o.c)
	if len(o.attempts("other")) != 1 || !slices.Equal(o.attempts("deaf"), []int{1, 2}) {
		t.Errorf("runs %v", o.runs)
	}
}

// The messages that were claimed with it do not wait for it: neither when it dies of this attempt and its key
// goes on, nor when its key may skip it.
func TestDrainOverrunSetsTheRestOfItsKeyFree(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]zq.ConsumerConfig{
		"dies":  {Concurrency: 2, MaxAttempts: 1},
		"skips": {Concurrency: 2, MaxAttempts: 3, OnFailure: zq.SkipKey},
		"halts": {Concurrency: 2, MaxAttempts: 1, OnDeath: zq.HaltKey},
		"retry": {Concurrency: 2, MaxAttempts: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOverrun(t, cfg)
			paused, err := o.look.Pause(t.Context())
			o.must(err)
			for i := range 60 { // quick ones, so that it claims ahead
				o.send(zq.Message{ID: fmt.Sprint("quick-", i)})
			}
			for _, id := range []string{"deaf", "m-0", "m-1", "m-2", "m-3"} {
				o.send(zq.Message{ID: id, Key: "k"})
			}
			resumed, err := o.look.Resume(t.Context())
			o.must(err)
			acked, dead := int64(65), int64(0)
			if cfg.MaxAttempts == 1 {
				acked, dead = 64, 1
			}
			if cfg.OnDeath == zq.HaltKey {
				acked = 60
			}
			zqt.Eventually(t, patience, func() bool { return o.counters().Acked == acked && o.depth().Dead == dead },
				"the rest goes on without it")
			if d := o.depth(); !paused || !resumed || d.Running != 0 || d.Claims != 0 {
				t.Errorf("%+v", d)
			}
			o.back()
			if cfg.OnDeath == zq.HaltKey {
				_, err = o.look.ResumeKey(t.Context(), "k")
				o.must(err)
			}
			o.over(65, int(dead))
			o.stop(o.c)
		})
	}
}

// A handler that obeys its context when the time is up is charged like any other that fails.
func TestDrainOverrunThatObeys(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	var mu sync.Mutex
	var runs []int
	c := x.start(zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
		mu.Lock()
		runs = append(runs, d.Attempt)
		mu.Unlock()
		if d.Attempt > 1 && !strings.Contains(d.LastError, zq.ErrTimeout.Error()) {
			t.Errorf("last error %q", d.LastError)
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}), zq.ConsumerConfig{MaxRun: 10 * time.Millisecond, MaxAttempts: 3, RetryDelay: shortRetry})
	x.send(zq.Message{ID: "m", Key: "k"})
	x.over(1, 1)
	x.stop(c)
	if s := c.Stats(); !slices.Equal(runs, []int{1, 2, 3}) || s.Taken+s.Late != 0 {
		t.Errorf("runs %v, %+v", runs, s)
	}
}
