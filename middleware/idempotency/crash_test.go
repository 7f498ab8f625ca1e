package idempotency_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// runWorker is a process whose handler says "running <id>" and never ends.
func runWorker() {
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("ADDR")})
	store, err := idempotency.NewRedisStore(rdb, os.Getenv("QUEUE"))
	if err != nil {
		panic(err)
	}
	mw, err := idempotency.New(store, idempotency.FromHeader("order"))
	if err != nil {
		panic(err)
	}
	handler := mw(zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
		fmt.Fprintln(os.Stdout, "running", d.ID)
		<-ctx.Done()
		return context.Cause(ctx)
	}))
	c, err := zq.NewConsumer(rdb, os.Getenv("QUEUE"), handler, zq.ConsumerConfig{
		Lease: 300 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	_ = c.Run(context.Background()) // it is killed
}

// A worker that is killed in the handler loses nothing: the message is delivered again and runs at once, though its
// mark would last for five minutes; a duplicate of it waits meanwhile, and then is not run.
func TestCrashAfterTheMark(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	x.send("first", "o-1")
	child := zqtest.Child(t, "worker", "ADDR="+zqtest.Shared(t).Addr(), "QUEUE="+x.queue)
	child.Expect("running first", limit)
	if r := x.record("o-1"); r.State != idempotency.StateRunning || r.Expires < time.Minute {
		t.Fatalf("the mark: %+v", r)
	}
	child.Kill()
	x.send("second", "o-1")

	runs := make(chan string, 10)
	began := time.Now()
	x.start(x.guard(func(_ context.Context, d *zq.Delivery) error {
		runs <- d.ID
		return nil
	}))
	if id := zqtest.Wait(t, runs, limit); id != "first" {
		t.Errorf("%s ran, want the message whose worker died", id)
	}
	x.drained()
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %v: until the mark expired", took)
	}
	if len(runs) > 0 {
		t.Errorf("%s ran too", <-runs)
	}
	x.told(idempotency.Ran, 1)
	x.told(idempotency.Skipped, 1)
	if r := x.record("o-1"); r.State != idempotency.StateDone {
		t.Errorf("the record: %+v", r)
	}
}

// A crash between the record of done and the ack acks the message without a second run.
func TestCrashAfterDone(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	var runs tally
	h := x.guard(runs.handle)
	// The first run's end is recorded here, as by a worker that dies right after; the message is still queued.
	x.send("m", "o-1")
	done := idempotency.Ending{
		Name: idempotency.Name{Scope: x.queue, Key: "o-1"}, Owner: owner("the same message's", 1),
		State: idempotency.StateDone, Keep: time.Hour,
	}
	if a := x.store.Finish(t.Context(), []idempotency.Ending{done})[0]; !a.Granted {
		t.Fatal(a.Err)
	}
	x.start(h)
	x.until(idempotency.Skipped)
	x.drained()
	runs.want(t, 0)
}

// A shutdown in the handler leaves nothing behind: the message runs again in another consumer, uncharged, at once.
func TestShutdownClearsTheMark(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	x.send("m", "o-1")
	running, attempts := make(chan struct{}), make(chan int, 1)
	c := x.start(x.guard(func(ctx context.Context, _ *zq.Delivery) error {
		close(running)
		<-ctx.Done()
		return ctx.Err()
	}), func(cfg *zq.ConsumerConfig) { cfg.DrainTime = time.Millisecond })
	zqtest.Wait(t, running, limit)
	if err := c.Stop(context.Background()); err != nil {
		t.Log("stop:", err) // it says that a handler had to be interrupted
	}
	if r := x.record("o-1"); r.State != idempotency.StateNone {
		t.Errorf("left behind: %+v", r)
	}
	x.start(x.guard(func(_ context.Context, d *zq.Delivery) error {
		attempts <- d.Attempt
		return nil
	}))
	if n := zqtest.Wait(t, attempts, limit); n != 1 {
		t.Errorf("attempt %d after a shutdown, want 1", n)
	}
	x.drained()
}
