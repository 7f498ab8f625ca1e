package integration_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// bounded is how long a stop may take at the very most that cannot reach Redis: the library's own timeouts
// and last words, and a machine under load.
const bounded = 20 * time.Second

// Redis dies while a consumer drains, or stands still: Stop comes back all the same, and when Redis is back
// with its log, all is still there and in order.
func TestDrainWithoutRedis(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"killed", "paused", "cut"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			x := newTrialOn(t, zqt.Redis(t, zqt.WithAppendOnly()))
			proxy := zqt.Proxy(t, x.srv.Addr())
			rdb := x.srv.Client(func(o *redis.Options) { o.Addr = proxy.Addr() })
			g := newGate(t)
			cfg := zq.ConsumerConfig{Concurrency: 6, Lease: 2 * time.Second, DrainTime: time.Second, Grace: 100 * time.Millisecond}
			c := x.startOn(rdb, recorded(x.rec.Add, "drains", 10, func(_ context.Context, d *zq.Delivery) (zqt.Op, error) {
				if d.ID[0] == 'm' {
					g.pass()
				}
				return zqt.Succeeded, nil
			}), cfg)
			x.t.Cleanup(g.open)
			x.produce(x.prod, traffic{name: "a", messages: 300, keys: 10, loose: 30}, &sent{})
			x.sendAll(numbered(40, 3)...)
			zqt.Eventually(t, patience, func() bool { return g.inside.Load() >= 4 }, "it is at work")
			stopped := make(chan error, 1)
			go func() { stopped <- c.Stop(context.Background()) }() // ends below
			zqt.Eventually(t, patience, func() bool { s, _ := c.Health(); return s == "stopped" }, "it stops")
			back := x.away(how, proxy)
			g.open() // now there are outcomes, and nobody takes them
			began := time.Now()
			if err := zqt.Wait(t, stopped, patience); err != nil {
				t.Errorf("stop: %v", err)
			}
			if took := time.Since(began); took > bounded {
				t.Errorf("stop took %v", took)
			} else {
				t.Logf("stop took %v", took)
			}
			x.rec.Add(zqt.Event{Op: zqt.Lost, Worker: "drains"})
			back()
			x.healthy()
			next := x.start(recorded(x.rec.Add, "next", 10, acks), cfg)
			x.over(340, 0)
			x.stop(next)
			x.inOrder()
			if n := x.counters(); n.Failed != 0 {
				t.Errorf("counters %+v", n)
			}
		})
	}
}

// away takes Redis from the consumer, and gives what brings it back.
func (x *trial) away(how string, proxy *zqt.FaultProxy) (back func()) {
	switch how {
	case "killed":
		x.srv.Kill()
		return x.srv.Restart
	case "paused":
		x.srv.Pause()
		return x.srv.Resume
	}
	proxy.Cut()
	return proxy.Heal
}

// A claim that is on its way when the consumer stops in a hurry, its reply still to come, is given back like
// the others; so is one whose reply never comes.
func TestDrainWhileAClaimIsOnItsWay(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{true, false} {
		t.Run(fmt.Sprint("late=", late), func(t *testing.T) {
			t.Parallel()
			j := newJourney(t)
			g := newGate(t)
			c := j.startOn(j.rdb, zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
				if d.ID == "first" {
					g.inside.Add(1)
					<-ctx.Done()
					return context.Cause(ctx)
				}
				t.Errorf("%s was started", d.ID)
				return nil
			}), zq.ConsumerConfig{Concurrency: 4, Lease: 30 * time.Second})
			j.send(zq.Message{ID: "first"})
			zqt.Eventually(t, patience, func() bool { s, _ := c.Health(); return g.inside.Load() == 1 && s == "idle" }, "it is at the first")
			claims := j.proxy.HoldReply(j.script("claim"))
			if !late {
				j.proxy.DropReply(j.script("claim"), 1)
			}
			j.sendAll(numbered(3, 1)...)
			zqt.Eventually(t, patience, func() bool { return j.depth().Running == 4 }, "the rest is claimed")
			settles := j.proxy.HoldReply(j.script("settle"))
			now, cancel := context.WithCancel(t.Context())
			cancel()
			stopped := make(chan error, 1)
			go func() { stopped <- c.Stop(now) }() // ends below
			zqt.Eventually(t, patience, func() bool { s, _ := c.Health(); return s == "stopped" }, "it stops")
			claims.Release()
			zqt.Eventually(t, patience, func() bool { return settles.Struck() > 0 }, "it gives back")
			settles.Release()
			var drain *zq.DrainError
			if err := zqt.Wait(t, stopped, patience); err != nil && !errors.As(err, &drain) {
				t.Errorf("stop: %v", err)
			}
			if d := j.depth(); d.Running != 0 || d.Claims != 0 || d.Pending != 4 {
				t.Errorf("after the stop: %+v, %+v", d, c.Stats())
			}
			j.healthy()
		})
	}
}

// A consumer lives once, and its ends can be called in any order, as often as one likes, from anywhere.
func TestDrainStartsAndStops(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	h := zq.HandlerFunc(func(context.Context, *zq.Delivery) error { return nil })
	make1 := func() *zq.Consumer {
		c, err := zq.NewConsumer(x.rdb, x.queue, h, zq.ConsumerConfig{})
		x.must(err)
		return c
	}
	c := make1()
	if s, _ := c.Health(); s != "new" || c.Stats() != (zq.ConsumerStats{}) {
		t.Errorf("before its start it is %s", s)
	}
	x.must(c.Stop(t.Context())) // of what never ran
	x.must(c.Start(t.Context()))
	if err := c.Start(t.Context()); !errors.Is(err, zq.ErrClosed) {
		t.Errorf("start again: %v", err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := c.Stop(context.Background()); err != nil {
				t.Errorf("stop: %v", err)
			}
		})
	}
	wg.Wait()
	zqt.Wait(t, c.Done(), patience)
	for _, err := range []error{c.Start(t.Context()), c.Run(t.Context())} {
		if !errors.Is(err, zq.ErrClosed) {
			t.Errorf("start after its end: %v", err)
		}
	}
	x.must(c.Stop(t.Context()))

	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := make1().Run(over); !errors.Is(err, context.Canceled) {
		t.Errorf("run with a context that is over: %v", err)
	}
	c = make1()
	ran := make(chan error, 1)
	go func() { ran <- c.Run(context.Background()) }() // ends with the stop
	zqt.Eventually(t, patience, func() bool { s, _ := c.Health(); return s == "idle" }, "it runs")
	x.must(c.Stop(t.Context()))
	x.must(zqt.Wait(t, ran, patience))
	x.healthy()
}

// Consumers start and stop at any moment under load, by a cancelled context, by Stop and by both at once.
func TestDrainUnderLoadConcurrentSafe(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	x.produce(x.prod, traffic{name: "a", messages: 3000, keys: 20, loose: 40}, &sent{})
	var crews sync.WaitGroup
	var rounds atomic.Int64
	for crew := range 3 {
		crews.Go(func() {
			for round := 0; x.counters().Acked < 3000 && round < 100; round++ {
				x.briefly(fmt.Sprintf("w%d.%d", crew, round), crew)
				rounds.Add(1)
			}
		})
	}
	crews.Wait()
	x.over(3000, 0)
	x.inOrder()
	if n := x.counters(); rounds.Load() < 4 || n.Failed+n.Reaped+n.Refused != 0 {
		t.Errorf("%d rounds, %+v", rounds.Load(), n)
	}
}

// briefly runs a consumer for some messages and ends it in one of three ways.
func (x *trial) briefly(name string, way int) {
	var runs atomic.Int64
	enough, most := make(chan struct{}), int64(x.dice.between(1, 80))
	c, err := zq.NewConsumer(x.rdb, x.queue, recorded(x.rec.Add, name, 10, func(context.Context, *zq.Delivery) (zqt.Op, error) {
		if runs.Add(1) == most {
			close(enough)
		}
		return zqt.Succeeded, nil
	}), zq.ConsumerConfig{Concurrency: 4, Lease: 30 * time.Second, ConfirmEach: way == 2})
	if err != nil {
		x.t.Error(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ran := make(chan error, 1)
	go func() { ran <- c.Run(ctx) }() // ends below
	select {
	case <-enough:
	case <-time.After(200 * time.Millisecond): // there is no more
	}
	if way != 0 {
		cancel()
	}
	if way != 1 {
		if err := c.Stop(context.Background()); err != nil {
			x.t.Errorf("stop %s: %v", name, err)
		}
	}
	if way == 0 || way == 1 {
		cancel()
	}
	if err := <-ran; err != nil && !errors.Is(err, context.Canceled) {
		x.t.Errorf("run %s: %v", name, err)
	}
}

// A process that is asked to end does so in good order, whatever it is at: nothing, a message, or one with more
// claimed behind it. Nobody has to wait for its leases.
func TestDrainOnSIGTERM(t *testing.T) {
	t.Parallel()
	for phase, messages := range map[string]int{"starting": 0, "idle": 0, "at work": 1, "with more in hand": 30} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			x := newTrial(t)
			for i := range messages {
				x.send(zq.Message{ID: fmt.Sprintf("m-%02d", i), Key: "k", Headers: map[string]string{headDo: doWait}})
			}
			p := x.child(workerSpec{Name: "asked", Concurrency: 2, MaxAttempts: 5, Lease: time.Minute})
			switch {
			case messages > 0:
				p.Expect("waiting m-00", patience)
			case phase == "idle":
				p.Expect("working", patience)
			}
			p.Terminate()
			x.must(permit(t.Context(), x.rdb, x.queue, "m-00"))
			x.exited(p)
			if d, n := x.depth(), x.counters(); int(d.Pending) != max(0, messages-1) || d.Running != 0 || int(n.Acked) != min(messages, 1) {
				t.Errorf("%+v, %+v", d, n)
			}
			c := x.start(recorded(x.rec.Add, "next", 5, acks), zq.ConsumerConfig{})
			x.over(messages, 0)
			x.stop(c)
			x.inOrder()
			zqt.NoViolations(t, x.rec.CheckOnce())
		})
	}
}

// A long life leaves nothing behind: no goroutine, no context hanging on another. It is not parallel, so that
// the goroutines are its own.
func TestDrainLeavesNothingBehind(t *testing.T) { //nolint:paralleltest // counts goroutines
	x := newTrial(t)
	var runs atomic.Int64
	c := x.start(zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
		if _, bound := ctx.Deadline(); bound {
			t.Error("a deadline where there is none")
		}
		if runs.Add(1)%20 == 0 && d.Attempt == 1 {
			return zq.RetryAfter(time.Millisecond, errMixed)
		}
		return nil
	}), zq.ConsumerConfig{Concurrency: 16})
	x.produce(x.prod, traffic{name: "warm", messages: 500, keys: 20, loose: 50}, &sent{})
	x.drained()
	before := runtime.NumGoroutine()
	x.produce(x.prod, traffic{name: "a", messages: 8000, keys: 20, loose: 50}, &sent{})
	x.drained()
	zqt.Eventually(t, patience, func() bool { return runtime.NumGoroutine() <= before+2 }, "no goroutine is left")
	x.stop(c)
	x.over(8500, 0)
	zqt.Eventually(t, patience, func() bool { return runtime.NumGoroutine() < before-16 }, "its own are gone")
}
