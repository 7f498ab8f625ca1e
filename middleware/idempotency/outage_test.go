package idempotency_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// behindProxy is a trial whose store is reached through a proxy, and its queue not.
func behindProxy(t testing.TB) (*trial, *zqtest.FaultProxy) {
	t.Helper()
	server := zqtest.Shared(t)
	proxy := zqtest.Proxy(t, server.Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr(), MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { rdb.Close() })
	return newTrialOn(t, server.Client(), rdb), proxy
}

// While the store is away messages are postponed without charge, its user is told once, and all goes on after that.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	x, proxy := behindProxy(t)
	told := make(chan error, 100)
	attempts := make(chan int, 10)
	x.start(x.guard(func(_ context.Context, d *zq.Delivery) error {
		attempts <- d.Attempt
		return nil
	}, idempotency.OnStore(func(err error) { told <- err })))
	proxy.Cut()
	for i := range 5 {
		x.send(order(i), order(i))
	}
	for range 7 { // so at least one of them a second time
		x.until(idempotency.Unavailable)
	}
	if err := zqtest.Wait(t, told, limit); err == nil {
		t.Error("told that the store is back")
	}
	proxy.Heal()
	for range 5 {
		if n := zqtest.Wait(t, attempts, limit); n != 1 {
			t.Errorf("attempt %d, want 1", n)
		}
	}
	x.drained()
	zqtest.Eventually(t, limit, func() bool {
		// The news of its return comes with a call that is a second later than the last failure.
		x.send(time.Now().String(), time.Now().String())
		x.until(idempotency.Ran)
		return len(told) > 0
	}, "news of the store's return")
	if err := <-told; err != nil {
		t.Errorf("told twice: %v", err)
	}
	x.drained()
	if len(told) > 0 {
		t.Errorf("told more: %v", <-told)
	}
}

// A run that ended well is acked though its end cannot be recorded: nothing runs it again. What can double is one
// duplicate, after the mark's lifetime.
func TestEndNotRecorded(t *testing.T) {
	t.Parallel()
	x, proxy := behindProxy(t)
	var runs tally
	x.start(x.guard(func(ctx context.Context, d *zq.Delivery) error {
		if d.ID == "a" {
			proxy.Cut()
		}
		return runs.handle(ctx, d)
	}, idempotency.RunningTTL(time.Second)))
	x.send("a", "o-1")
	x.until(idempotency.Unrecorded)
	if dead := x.drained(); dead != 0 {
		t.Errorf("%d dead letters", dead)
	}
	runs.want(t, 1)
	proxy.Heal()
	for _, id := range []string{"b", "c"} {
		x.send(id, "o-1")
		x.drained()
	}
	runs.want(t, 2)
	x.told(idempotency.Skipped, 1)
}

// An outage that ends within the tries is not noticed.
func TestEndRecordedAtLast(t *testing.T) {
	t.Parallel()
	x, proxy := behindProxy(t)
	h := x.guard(func(context.Context, *zq.Delivery) error {
		proxy.DropCommand(nil, 1)
		return nil
	})
	if err := h.Handle(t.Context(), delivery(x.queue, "a", "o-1")); err != nil {
		t.Error(err)
	}
	x.until(idempotency.Ran)
	if r := x.record("o-1"); r.State != idempotency.StateDone {
		t.Errorf("left: %+v", r)
	}
}

// Lost replies on the way in and out, through the whole middleware: one run, and done.
func TestLostRepliesOfARun(t *testing.T) {
	t.Parallel()
	server := zqtest.Shared(t)
	proxy := zqtest.Proxy(t, server.Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr()}) // go-redis sends again by itself
	t.Cleanup(func() { rdb.Close() })
	x := newTrialOn(t, server.Client(), rdb)
	var runs tally
	h := x.guard(runs.handle)
	for i := range 3 {
		x.must(h.Handle(t.Context(), delivery(x.queue, order(i), order(i)))) // the scripts are known
		lost := proxy.DropReply(zqtest.Command("EVALSHA"), 2)
		x.must(h.Handle(t.Context(), delivery(x.queue, "m", "lost-"+order(i))))
		zqtest.Wait(t, lost.Done(), limit)
		if r := x.record("lost-" + order(i)); r.State != idempotency.StateDone {
			t.Errorf("left: %+v", r)
		}
	}
	runs.want(t, 6)
}

// At a concurrency of 100 the round trips are shared: one for many deliveries.
func TestRoundTripsAreShared(t *testing.T) {
	t.Parallel()
	server := zqtest.Shared(t)
	proxy := zqtest.Proxy(t, server.Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
	t.Cleanup(func() { rdb.Close() })
	x := newTrialOn(t, server.Client(), rdb)
	x.store = newStore(t, rdb, x.queue, idempotency.Shards(1)) // a round trip is one command
	const deliveries, concurrency = 2000, 100
	slow := proxy.Delay(zqtest.Command("EVALSHA"), 2*time.Millisecond)
	defer slow.Release()
	sent := proxy.Count(zqtest.Command("EVALSHA"))
	var runs tally
	h := x.guard(runs.handle)
	var wait sync.WaitGroup
	var next atomic.Int64
	for range concurrency {
		wait.Go(func() {
			for i := next.Add(1); i <= deliveries; i = next.Add(1) {
				if err := h.Handle(t.Context(), delivery(x.queue, order(int(i)), order(int(i)))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	runs.want(t, deliveries)
	ratio := float64(sent.Commands()) / deliveries
	t.Logf("%d round trips for %d deliveries: %.3f each", sent.Commands(), deliveries, ratio)
	if ratio > 0.5 {
		t.Errorf("%.2f round trips a delivery, want less than 0.5", ratio)
	}
}

// A store that panics, or answers too little, costs its callers their answers and nothing else.
func TestBadStores(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]*badStore{
		"panics": {begin: func([]idempotency.Claim) []idempotency.Answer { panic("no") }},
		"mute":   {begin: func([]idempotency.Claim) []idempotency.Answer { return nil }},
	} {
		mw, err := idempotency.New(store, idempotency.FromID())
		if err != nil {
			t.Fatal(err)
		}
		var runs tally
		err = mw(zq.HandlerFunc(runs.handle)).Handle(t.Context(), &zq.Delivery{Queue: "q", ID: "a"})
		if zq.Explain(err).Action != zq.ActionPostpone {
			t.Errorf("%s: %v", name, err)
		}
		runs.want(t, 0)
	}
}

type badStore struct {
	idempotency.Store
	begin func([]idempotency.Claim) []idempotency.Answer
}

func (s *badStore) Begin(_ context.Context, claims []idempotency.Claim) []idempotency.Answer {
	return s.begin(claims)
}

// A key that holds something else is an error that somebody sees, not an endless wait.
func TestForeignKeyIsAnError(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	var runs tally
	h := x.guard(runs.handle)
	x.must(h.Handle(t.Context(), delivery(x.queue, "a", "o-1")))
	x.must(x.rdb.Set(t.Context(), x.keys()[0], "something else", 0).Err())
	err := h.Handle(t.Context(), delivery(x.queue, "b", "o-1"))
	if !errors.Is(err, zq.ErrWrongType) || zq.Explain(err).Action != zq.ActionRetry {
		t.Errorf("got %v", err)
	}
	runs.want(t, 1)
}
