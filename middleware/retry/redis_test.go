package retry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zqueue/zqueue/middleware/retry"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// On a real server: a message that fails keeps its place in its key, its attempts count up, the delay is held, and
// in the end it is a dead letter with the reason; those behind it come then.
func TestOnRedis(t *testing.T) {
	t.Parallel()
	const attempts = 3
	rdb, queue := zqtest.Shared(t).Client(), zqtest.Queue(t)
	var mu sync.Mutex
	var runs []string
	var decisions []retry.Decision
	var ages []time.Duration
	curve := retry.Curve{Initial: 20 * time.Millisecond, Max: time.Second}
	mw := must(t, retry.Backoff(curve), retry.MaxAttempts(attempts), retry.MaxAge(time.Hour),
		retry.OnRetry(func(_ context.Context, d *zq.Delivery, dec retry.Decision) {
			mu.Lock()
			defer mu.Unlock()
			decisions = append(decisions, dec)
			ages = append(ages, d.ClaimedAt.Sub(d.EnqueuedAt))
		}))
	done := make(chan struct{})
	handler := zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		runs = append(runs, fmt.Sprint(d.ID, d.Attempt))
		switch d.ID {
		case "bad":
			return fmt.Errorf("try %d: %w", d.Attempt, errOwn)
		case "last":
			close(done)
		}
		return nil
	})
	p, err := zq.NewProducer(rdb, queue)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"first", "bad", "last"} {
		if _, err := p.Enqueue(t.Context(), zq.Message{ID: id, Key: "k"}); err != nil {
			t.Fatal(err)
		}
	}
	c, err := zq.NewOrderedConsumer(rdb, queue, mw(handler), zq.OrderedConfig{Concurrency: 4})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	zqtest.Wait(t, done, limit)
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"first1", "bad1", "bad2", "bad3", "last1"}; !slices.Equal(runs, want) {
		t.Errorf("runs %v, want %v", runs, want)
	}
	if len(decisions) != attempts || decisions[0].After != 20*time.Millisecond || decisions[1].After != 40*time.Millisecond ||
		decisions[2].Action != zq.ActionDead {
		t.Errorf("decisions %+v", decisions)
	}
	if len(ages) == attempts && (ages[0] < 0 || ages[1]-ages[0] < 20*time.Millisecond || ages[2]-ages[1] < 40*time.Millisecond) {
		t.Errorf("claimed at ages %v: sooner than was decided", ages)
	}
	in, err := zq.NewInspector(rdb, queue)
	if err != nil {
		t.Fatal(err)
	}
	l, err := in.DeadLetter(t.Context(), "bad")
	if err != nil || l.Reason != zq.ReasonAttempts || l.Attempts != attempts || l.Error != "try 3: "+errOwn.Error() {
		t.Errorf("dead letter %+v, %v", l, err)
	}
}

// A drain that cuts a handler off charges nothing, on the last attempt too, and with backoff.Permanent's habit of
// wrapping whatever comes.
func TestShutdownOnRedis(t *testing.T) {
	t.Parallel()
	rdb, queue := zqtest.Shared(t).Client(), zqtest.Queue(t)
	p, err := zq.NewProducer(rdb, queue)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Enqueue(t.Context(), zq.Message{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	mw := must(t, retry.MaxAttempts(1), retry.On(retry.Is(context.Canceled), retry.ToDead("wrong")))
	inside := make(chan struct{})
	c, err := zq.NewConsumer(rdb, queue, mw(zq.HandlerFunc(func(ctx context.Context, _ *zq.Delivery) error {
		close(inside)
		<-ctx.Done()
		return ctx.Err()
	})), zq.ConsumerConfig{DrainTime: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	zqtest.Wait(t, inside, limit)
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	in, err := zq.NewInspector(rdb, queue)
	if err != nil {
		t.Fatal(err)
	}
	info, err := in.Message(t.Context(), "a")
	if err != nil || errors.Is(err, zq.ErrNotFound) || info.State != zq.StatePending || info.Attempts != 0 {
		t.Errorf("%+v, %v", info, err)
	}
}
