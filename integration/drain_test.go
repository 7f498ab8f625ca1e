package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// gate is what handlers wait at.
type gate struct {
	inside atomic.Int64
	opened chan struct{}
	open   func()
}

func newGate(t *testing.T) *gate {
	g := &gate{opened: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	t.Cleanup(g.open)
	return g
}

// pass waits, deaf to any context.
func (g *gate) pass() {
	g.inside.Add(1)
	<-g.opened
	g.inside.Add(-1)
}

// hoard starts a consumer that has claimed far ahead of its one handler, which waits at the gate with the
// first of the messages "m-…"; what it holds comes back with the number.
func (x *trial) hoard(g *gate, cfg zq.ConsumerConfig, msgs []zq.Message) (c *zq.Consumer, held int64) {
	x.t.Helper()
	paused, err := x.look.Pause(x.t.Context())
	x.must(err)
	for i := range 60 { // quick ones, so that it claims ahead
		x.send(zq.Message{ID: fmt.Sprintf("quick-%02d", i)})
	}
	x.sendAll(msgs...)
	cfg.Concurrency = 1
	c = x.start(recorded(x.rec.Add, "hoarder", 5, func(_ context.Context, d *zq.Delivery) (zqt.Op, error) {
		if strings.HasPrefix(d.ID, "m-") {
			g.pass()
		}
		return zqt.Succeeded, nil
	}), cfg)
	x.t.Cleanup(g.open) // ahead of the consumer's own
	resumed, err := x.look.Resume(x.t.Context())
	x.must(err)
	zqt.Eventually(x.t, patience, func() bool { return g.inside.Load() == 1 && x.counters().Acked == 60 }, "it is at the first")
	if held = x.depth().Running; held < 4 || !paused || !resumed {
		x.t.Fatalf("this is no trial: it holds %d messages", held)
	}
	return c, held
}

func numbered(n, keys int) []zq.Message {
	msgs := make([]zq.Message, n)
	for i := range msgs {
		msgs[i].ID = fmt.Sprintf("m-%03d", i)
		if keys > 0 && i%(keys+1) > 0 {
			msgs[i].Key = fmt.Sprint("k", i%(keys+1))
		}
	}
	return msgs
}

// A consumer that stops gives what it has not started back at once, uncharged and in its place: with leases
// of half a minute others run it all the same, while the stopping one still finishes its last.
func TestDrainGivesTheUnstartedBack(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	g := newGate(t)
	c, held := x.hoard(g, zq.ConsumerConfig{Lease: 30 * time.Second}, numbered(120, 2))
	stopped := make(chan error, 1)
	go func() { stopped <- c.Stop(context.Background()) }() // ends below
	zqt.Eventually(t, patience, func() bool { s, _ := c.Health(); return s == "stopped" }, "it stops")
	g.open()
	if err := zqt.Wait(t, stopped, patience); err != nil {
		t.Errorf("stop: %v", err)
	}
	if d := x.depth(); d.Running != 0 || d.Claims != 0 || d.Pending != 119 {
		t.Errorf("after the stop: %+v", d)
	}
	if s := c.Stats(); s.Released != held-1 || s.Acked != 61 || s.Settled < 61 || s.Running+s.Waiting != 0 {
		t.Errorf("it held %d: %+v", held, s)
	}
	x.healthy()
	began := time.Now()
	runs := &attempts{of: map[string][]int{}}
	next := x.start(recorded(x.rec.Add, "next", 5, runs.note), zq.ConsumerConfig{})
	x.over(180, 0)
	x.stop(next)
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("the others waited %v", took)
	}
	x.inOrder()
	zqt.NoViolations(t, x.rec.CheckOnce())
	for id, ns := range runs.of {
		if !slices.Equal(ns, []int{1}) {
			t.Errorf("%s ran as attempts %v", id, ns)
		}
	}
	if n := x.counters(); n.Failed+n.Reaped+n.Refused != 0 {
		t.Errorf("counters %+v", n)
	}
}

// Handlers at work finish within the drain time: their contexts live on, and their acks are taken.
func TestDrainLetsHandlersFinish(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	g := newGate(t)
	c := x.start(recorded(x.rec.Add, "w", 5, func(ctx context.Context, _ *zq.Delivery) (zqt.Op, error) {
		g.pass()
		if ctx.Err() != nil {
			t.Errorf("its context ended: %v", context.Cause(ctx))
		}
		return zqt.Succeeded, nil
	}), zq.ConsumerConfig{Concurrency: 8})
	for i := range 20 {
		x.send(zq.Message{ID: fmt.Sprint("m-", i)})
	}
	zqt.Eventually(t, patience, func() bool { return g.inside.Load() == 8 }, "all are at work")
	stopped := make(chan error, 1)
	go func() { stopped <- c.Stop(context.Background()) }() // ends below
	zqt.Eventually(t, patience, func() bool { s, _ := c.Health(); return s == "stopped" }, "it stops")
	select {
	case err := <-stopped:
		t.Fatalf("it stopped ahead of its handlers: %v", err)
	default:
	}
	g.open()
	if err := zqt.Wait(t, stopped, patience); err != nil {
		t.Error(err)
	}
	if d, n := x.depth(), x.counters(); d.Pending != 12 || d.Running != 0 || n.Acked != 8 {
		t.Errorf("%+v, %+v", d, n)
	}
	x.healthy()
}

// When the drain time is over the handlers' contexts end with ErrShutdown. Who passes that on was not at
// fault: his message is given back uncharged. Who has an error of his own is charged, who succeeds is acked.
func TestDrainEndsContexts(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	var inside atomic.Int64
	c := x.start(recorded(x.rec.Add, "w", 5, func(ctx context.Context, d *zq.Delivery) (zqt.Op, error) {
		inside.Add(1)
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), zq.ErrShutdown) {
			t.Errorf("%s: its context ended: %v", d.ID, context.Cause(ctx))
		}
		switch d.ID {
		case "passes-on":
			return zqt.Postponed, fmt.Errorf("while at work: %w", ctx.Err())
		case "names-it":
			return zqt.Postponed, context.Cause(ctx)
		case "own":
			return zqt.Failed, errMixed
		case "dead":
			return zqt.Dead, zq.Dead("told", ctx.Err())
		}
		return zqt.Succeeded, nil
	}), zq.ConsumerConfig{Concurrency: 5, DrainTime: 20 * time.Millisecond})
	ids := []string{"passes-on", "names-it", "own", "dead", "succeeds"}
	for _, id := range ids {
		x.send(zq.Message{ID: id, Key: id})
	}
	zqt.Eventually(t, patience, func() bool { return inside.Load() == 5 }, "all are at work")
	x.stop(c)
	x.healthy()
	want := map[string]zq.Info{
		"passes-on": {State: zq.StatePending}, "names-it": {State: zq.StatePending}, "own": {State: zq.StateRetry, Attempts: 1},
		"dead": {State: zq.StateDead, Attempts: 1}, "succeeds": {State: zq.StateDone},
	}
	for _, id := range ids {
		got, err := x.look.Message(t.Context(), id)
		if err != nil || got.State != want[id].State || got.Attempts != want[id].Attempts {
			t.Errorf("%s is %s after %d attempts, want %s after %d: %v", id, got.State, got.Attempts, want[id].State, want[id].Attempts, err)
		}
	}
}

// Handlers that are deaf to their contexts are named, and lose their messages: others run them at once. What
// the deaf return later counts for nothing.
func TestDrainLeavesTheDeaf(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	g := newGate(t)
	c := x.start(zq.HandlerFunc(func(context.Context, *zq.Delivery) error {
		g.pass()
		return nil
	}), zq.ConsumerConfig{Concurrency: 3, DrainTime: 20 * time.Millisecond, Grace: 20 * time.Millisecond})
	for i := range 9 {
		x.send(zq.Message{ID: fmt.Sprint("m-", i), Key: fmt.Sprint("k", i%3)})
	}
	zqt.Eventually(t, patience, func() bool { return g.inside.Load() == 3 }, "all are at work")
	err := c.Stop(context.Background())
	var drain *zq.DrainError
	if !errors.As(err, &drain) || drain.Running != 3 {
		t.Fatalf("stop: %v", err)
	}
	if again := c.Stop(context.Background()); again == nil || again.Error() != err.Error() {
		t.Errorf("stop again: %v", again)
	}
	x.healthy()
	runs := &attempts{of: map[string][]int{}}
	next := x.start(recorded(x.rec.Add, "next", 5, runs.note), zq.ConsumerConfig{})
	x.over(9, 0)
	x.stop(next)
	x.inOrder()
	zqt.NoViolations(t, x.rec.CheckOnce())
	for id, ns := range runs.of {
		if !slices.Equal(ns, []int{1}) {
			t.Errorf("%s ran as attempts %v", id, ns)
		}
	}
	before := x.counters()
	g.open()
	zqt.Eventually(t, patience, func() bool { s := c.Stats(); return s.Late == 3 && s.Running == 0 }, "the deaf are back")
	if after := x.counters(); after != before {
		t.Errorf("counters went from %+v to %+v", before, after)
	}
}

// Stop with a context that is over waits for nobody: under load, in the middle of claims, it comes back soon,
// and what it held others run long before the lease ends.
func TestDrainInAHurry(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	now, cancel := context.WithCancel(t.Context())
	cancel()
	x.produce(x.prod, traffic{name: "a", messages: 4000, keys: 40, loose: 50}, &sent{})
	began := time.Now()
	for round := range 20 {
		var runs atomic.Int64
		enough, most := make(chan struct{}), int64(x.dice.between(1, 120))
		c := x.start(recorded(x.rec.Add, fmt.Sprint("w", round), 5, func(ctx context.Context, _ *zq.Delivery) (zqt.Op, error) {
			if runs.Add(1) == most {
				close(enough)
			}
			if x.dice.percent(10) {
				<-ctx.Done()
			}
			return zqt.Succeeded, nil
		}), zq.ConsumerConfig{Concurrency: 32, Lease: 30 * time.Second})
		zqt.Wait(t, enough, patience)
		var drain *zq.DrainError
		if err := c.Stop(now); err != nil && !errors.As(err, &drain) {
			t.Errorf("stop: %v", err)
		}
		zqt.Eventually(t, patience, func() bool { return c.Stats().Running == 0 }, "its handlers are back")
		x.rec.Add(zqt.Event{Op: zqt.Lost, Worker: fmt.Sprint("w", round)})
		if d := x.depth(); d.Running != 0 || d.Claims != 0 {
			t.Fatalf("round %d: %d messages are still held: %+v", round, d.Running, c.Stats())
		}
		x.healthy()
	}
	last := x.start(recorded(x.rec.Add, "last", 5, acks), zq.ConsumerConfig{})
	x.over(4000, 0)
	x.stop(last)
	if n, took := x.counters(), time.Since(began); took > 25*time.Second || n.Reaped+n.Failed != 0 {
		t.Errorf("after %v: %+v", took, n)
	}
	zqt.NoViolations(t, x.rec.CheckAllDone())
}
