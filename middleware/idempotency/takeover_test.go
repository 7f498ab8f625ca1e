package idempotency_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

func goexit() { runtime.Goexit() }

// steal gives the running mark of a key to another message, as when it expired and that came first.
func (x *trial) steal(order string) {
	x.t.Helper()
	name := idempotency.Name{Scope: x.queue, Key: order}
	x.must(x.store.Forget(x.t.Context(), name))
	a := x.store.Begin(x.t.Context(), []idempotency.Claim{{Name: name, Owner: owner("thief", 1), For: time.Hour}})[0]
	if !a.Granted {
		x.t.Fatalf("not stolen: %+v", a)
	}
}

// A run whose mark was taken over is told so by its context, is not charged, and cannot end the other's mark.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	running, causes := make(chan struct{}, 1), make(chan error, 1)
	h := x.guard(func(ctx context.Context, _ *zq.Delivery) error {
		running <- struct{}{}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return ctx.Err()
	}, idempotency.RunningTTL(time.Second))
	said := make(chan error, 1)
	go func() { said <- h.Handle(t.Context(), delivery(x.queue, "a", "o-1")) }()
	zqtest.Wait(t, running, limit)
	x.steal("o-1")
	if cause := zqtest.Wait(t, causes, limit); !errors.Is(cause, idempotency.ErrTaken) {
		t.Errorf("the handler's context ended with %v", cause)
	}
	if err := zqtest.Wait(t, said, limit); zq.Explain(err).Action != zq.ActionPostpone {
		t.Errorf("the run's result is %v, want a postponement", err)
	}
	if r := x.record("o-1"); r.State != idempotency.StateRunning || r.Owner.Message != "thief" {
		t.Errorf("the other's mark: %+v", r)
	}
}

// A handler that ended well after all is acked, and that its end is not recorded is told.
func TestDoneAfterTakeover(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	h := x.guard(func(context.Context, *zq.Delivery) error {
		x.steal("o-1")
		return nil
	})
	if err := h.Handle(t.Context(), delivery(x.queue, "a", "o-1")); err != nil {
		t.Errorf("the run's result is %v", err)
	}
	x.until(idempotency.Unrecorded)
	if r := x.record("o-1"); r.State != idempotency.StateRunning || r.Owner.Message != "thief" {
		t.Errorf("the other's mark: %+v", r)
	}
}

// A mark that is gone, after an eviction or a failover, is set again while its run goes on.
func TestRenewalBringsTheMarkBack(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	running, goOn, said := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	h := x.guard(func(ctx context.Context, _ *zq.Delivery) error {
		close(running)
		<-goOn
		return ctx.Err()
	}, idempotency.RunningTTL(time.Second))
	go func() { said <- h.Handle(t.Context(), delivery(x.queue, "a", "o-1")) }()
	zqtest.Wait(t, running, limit)
	x.must(x.rdb.Del(t.Context(), x.keys()...).Err())
	zqtest.Eventually(t, limit, func() bool { return x.record("o-1").State == idempotency.StateRunning }, "the mark")
	close(goOn)
	if err := zqtest.Wait(t, said, limit); err != nil {
		t.Error(err)
	}
	if r := x.record("o-1"); r.State != idempotency.StateDone {
		t.Errorf("left: %+v", r)
	}
}

// A lease that is lost hands the key to the redelivery at once, and the late run ends nothing.
func TestLeaseLost(t *testing.T) {
	t.Parallel()
	proxied := zqtest.Redis(t)
	proxy := zqtest.Proxy(t, proxied.Addr())
	direct := proxied.Client()
	x := newTrialOn(t, direct, direct)
	slow := newTrialOn(t, direct, direct)
	slow.queue, slow.store = x.queue, x.store
	slow.rdb = proxied.Client()
	slow.rdb.Options().Addr = proxy.Addr() // the consumer makes clients of its own from these options
	running, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	slow.start(x.guard(func(ctx context.Context, _ *zq.Delivery) error {
		close(running)
		<-ctx.Done()
		<-goOn // it takes its time, and then claims that all is well
		done <- context.Cause(ctx)
		return nil
	}), func(c *zq.ConsumerConfig) {
		c.Lease = 300 * time.Millisecond
		c.Grace = time.Hour
		c.DrainTime = time.Millisecond
	})
	x.send("a", "o-1")
	zqtest.Wait(t, running, limit)
	proxy.Cut()
	again, finish := make(chan struct{}), make(chan struct{})
	x.start(x.guard(func(context.Context, *zq.Delivery) error {
		close(again)
		<-finish
		return nil
	}))
	zqtest.Wait(t, again, limit) // while the first run still holds what it thinks its mark
	mine := x.record("o-1").Owner
	close(goOn)
	if cause := zqtest.Wait(t, done, limit); !errors.Is(cause, zq.ErrLeaseLost) {
		t.Errorf("the first run's context: %v", cause)
	}
	x.until(idempotency.Unrecorded)
	if r := x.record("o-1"); r.State != idempotency.StateRunning || r.Owner != mine {
		t.Errorf("the late run has changed the mark to %+v", r)
	}
	close(finish)
	x.until(idempotency.Ran)
	if r := x.record("o-1"); r.State != idempotency.StateDone || r.Owner != mine {
		t.Errorf("left: %+v", r)
	}
	proxy.Heal()
}
