package retry_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware/retry"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// trial is a queue of its own on a real server.
type trial struct {
	*testing.T
	rdb   redis.UniversalClient
	queue string
	look  *zq.Inspector
}

func newTrial(t *testing.T) *trial {
	t.Helper()
	x := &trial{T: t, rdb: zqtest.Shared(t).Client(), queue: zqtest.Queue(t)}
	var err error
	x.look, err = zq.NewInspector(x.rdb, x.queue)
	x.must(err)
	return x
}

func (x *trial) must(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

func (x *trial) send(ids ...string) {
	x.Helper()
	p, err := zq.NewProducer(x.rdb, x.queue)
	x.must(err)
	for _, id := range ids {
		_, err := p.Enqueue(x.Context(), zq.Message{ID: id, Key: "k"})
		x.must(err)
	}
}

// work runs a consumer until the signal comes.
func (x *trial) work(h zq.Handler, cfg zq.OrderedConfig, until <-chan struct{}) {
	x.Helper()
	c, err := zq.NewOrderedConsumer(x.rdb, x.queue, h, cfg)
	x.must(err)
	x.must(c.Start(x.Context()))
	zqtest.Wait(x.T, until, limit)
	if err := c.Stop(x.Context()); err != nil {
		x.Error(err)
	}
}

// On a real server: a message that fails keeps its place in its key, its attempts count up, the delay is held, and
// in the end it is a dead letter with the reason; those behind it come then.
func TestOnRedis(t *testing.T) {
	t.Parallel()
	const attempts, first = 3, 20 * time.Millisecond
	x := newTrial(t)
	// One key: its runs come one after the other, and Stop comes after them, so that nothing needs a lock.
	var runs []string
	var decisions []retry.Decision
	var ages []time.Duration
	mw := must(t, retry.Backoff(retry.Curve{Initial: first, Max: time.Second}), retry.MaxAttempts(attempts), retry.MaxAge(time.Hour),
		retry.OnRetry(func(_ context.Context, d *zq.Delivery, dec retry.Decision) {
			decisions, ages = append(decisions, dec), append(ages, d.ClaimedAt.Sub(d.EnqueuedAt))
		}))
	done := make(chan struct{})
	x.send("first", "bad", "last")
	x.work(mw(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		runs = append(runs, fmt.Sprint(d.ID, d.Attempt))
		switch d.ID {
		case "bad":
			return fmt.Errorf("try %d: %w", d.Attempt, errOwn)
		case "last":
			close(done)
		}
		return nil
	})), zq.OrderedConfig{Concurrency: 4}, done)
	if want := []string{"first1", "bad1", "bad2", "bad3", "last1"}; !slices.Equal(runs, want) {
		t.Errorf("runs %v, want %v", runs, want)
	}
	if len(decisions) != attempts || decisions[0].After != first || decisions[1].After != 2*first || decisions[2].Action != zq.ActionDead {
		t.Fatalf("decisions %+v", decisions)
	}
	if ages[0] < 0 || ages[1]-ages[0] < first || ages[2]-ages[1] < 2*first {
		t.Errorf("claimed at ages %v: sooner than was decided", ages)
	}
	l, err := x.look.DeadLetter(t.Context(), "bad")
	if err != nil || l.Reason != zq.ReasonAttempts || l.Attempts != attempts || l.Error != "try 3: "+errOwn.Error() {
		t.Errorf("dead letter %+v, %v", l, err)
	}
}

// On a real server: the age is the stored one. The first delay is still within the limit, the second is not.
func TestAgeOnRedis(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	mw := must(t, retry.Backoff(retry.Curve{Initial: time.Millisecond, Max: time.Hour, Multiplier: 1000}), retry.MaxAge(time.Minute))
	done := make(chan struct{})
	x.send("old", "next")
	x.work(mw(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		switch {
		case d.ID == "next":
			close(done)
			return nil
		case d.Attempt == 2: // what a message from an hour ago would be
			d.EnqueuedAt = d.EnqueuedAt.Add(-time.Hour)
		}
		return errOwn
	})), zq.OrderedConfig{}, done)
	if l, err := x.look.DeadLetter(t.Context(), "old"); err != nil || l.Reason != retry.ReasonAge || l.Attempts != 2 {
		t.Errorf("dead letter %+v, %v", l, err)
	}
}

// A drain that cuts a handler off charges nothing, on the last attempt too, and whatever a rule says of it.
func TestShutdownOnRedis(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	mw := must(t, retry.MaxAttempts(1), retry.On(retry.Is(context.Canceled), retry.ToDead("wrong")))
	inside := make(chan struct{})
	x.send("a")
	x.work(mw(zq.HandlerFunc(func(ctx context.Context, _ *zq.Delivery) error {
		close(inside)
		<-ctx.Done()
		return ctx.Err()
	})), zq.OrderedConfig{DrainTime: time.Millisecond}, inside)
	info, err := x.look.Message(t.Context(), "a")
	if err != nil || info.State != zq.StatePending || info.Attempts != 0 {
		t.Errorf("%+v, %v", info, err)
	}
}
