package middleware_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware"
	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/middleware/ratelimit"
	"github.com/zqueue/zqueue/middleware/retry"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// run starts a consumer behind a plan of a queue until the test ends.
func run(t *testing.T, rdb *redis.Client, queue string, plan middleware.Plan, h zq.HandlerFunc) {
	t.Helper()
	stack, err := plan.Build(middleware.Env{Queue: queue, Redis: rdb, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	c, err := zq.NewConsumer(rdb, queue, stack.Chain.Then(h), zq.ConsumerConfig{
		Concurrency: 1, MaxAttempts: 3, Observers: stack.Observers, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// The rate limit in the standard chain, in two consumers: they share the queue's rate, a duplicate costs nothing of it,
// what is over it waits uncharged, and a key function that panics is a failed run that retry decides on.
func TestRateLimitOnRedis(t *testing.T) {
	t.Parallel()
	rdb, queue := zqtest.Shared(t).Client(), zqtest.Queue(t)
	inspector, err := zq.NewInspector(rdb, queue)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan string, 100)
	rate := func(d *zq.Delivery) string {
		asked <- d.ID
		if d.ID == "panics" {
			panic("name")
		}
		return d.Headers["rate"]
	}
	soon := retry.Curve{Initial: time.Millisecond, Max: time.Millisecond, Multiplier: 1}
	plan := middleware.Standard(middleware.RateLimit(1.0/3600, 1, ratelimit.By(rate)),
		middleware.Idempotency(idempotency.FromHeader("order")), middleware.Retry(retry.Backoff(soon)))
	ran := make(chan string, 100)
	for range 2 {
		run(t, rdb, queue, plan, func(_ context.Context, d *zq.Delivery) error {
			ran <- d.ID
			return nil
		})
	}
	p, err := zq.NewProducer(rdb, queue)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ id, order, rate, want string }{
		{"first", "o-1", "a", "done"},
		{"second", "o-2", "a", "delayed"},
		{"duplicate", "o-1", "a", "done"},
		{"other rate", "o-3", "b", "done"},
		{"unlimited", "o-4", "", "done"},
		{"panics", "o-5", "c", zq.ReasonAttempts},
	} {
		headers := map[string]string{"order": c.order, "rate": c.rate}
		if _, err := p.Enqueue(t.Context(), zq.Message{ID: c.id, Headers: headers}); err != nil {
			t.Fatal(err)
		}
		zqtest.Eventually(t, limit, func() bool { return become(t, inspector, c.id) == c.want }, c.id+" to become "+c.want)
	}
	info, err := inspector.Message(t.Context(), "second")
	if err != nil || info.Attempts != 0 {
		t.Errorf("the one that waits: %+v, %v", info, err)
	}
	close(ran)
	var all []string
	for id := range ran {
		all = append(all, id)
	}
	if got := strings.Join(all, ", "); got != "first, other rate, unlimited" {
		t.Errorf("ran: %s", got)
	}
	close(asked)
	for id := range asked {
		if id == "duplicate" {
			t.Error("a duplicate asked for a place in the rate")
		}
	}
	if keys := rdb.Keys(t.Context(), "zq:{rate/"+queue+"/*").Val(); len(keys) == 0 {
		t.Error("the rate is not in the scope of its queue")
	}
}

// One limiter for two queues, and the environment's logger.
func TestRateLimitIn(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	e := env(t) // its Redis is away
	e.Logger = slog.New(slog.NewTextHandler(&log, nil))
	limiter, err := ratelimit.Shared(e.Redis, "both", 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, queue := range []string{"a", "b"} {
		e.Queue = queue
		stack, err := middleware.Ordered(middleware.RateLimitIn(limiter, ratelimit.FailClosed())).Build(e)
		if err != nil {
			t.Fatal(err)
		}
		h := stack.Chain.Then(zq.HandlerFunc(func(context.Context, *zq.Delivery) error { return errors.New("ran") }))
		if err := h.Handle(t.Context(), &zq.Delivery{Queue: queue, ID: "m"}); zq.Explain(err).Action != zq.ActionPostpone {
			t.Errorf("%s: %v", queue, err)
		}
	}
	if n := strings.Count(log.String(), "messages are postponed"); n != 2 {
		t.Errorf("logged\n%s", &log)
	}
}

// All that is wrong with the limit, its options and the environment is told at once.
func TestRateLimitFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		layer middleware.Layer
		env   middleware.Env
		want  []string
	}{
		"nothing": {
			middleware.RateLimit(0, 0, ratelimit.Timeout(-1), ratelimit.By(nil)), middleware.Env{},
			[]string{
				"ratelimit: ", "ratelimit.Shared limit is 0", "ratelimit.Shared burst is 0", "ratelimit.Shared client is nil",
				`ratelimit.Shared scope is ""`, "ratelimit.Timeout is -1ns", "ratelimit.By is nil",
			},
		},
		"options alone": {
			middleware.RateLimit(1, 1, ratelimit.Timeout(-1)), env(t), []string{"ratelimit: ", "ratelimit.Timeout is -1ns"},
		},
		"no limiter": {middleware.RateLimitIn(nil), env(t), []string{"ratelimit: ", "ratelimit limiter is nil"}},
	} {
		_, err := middleware.Ordered(c.layer).Build(c.env)
		if !errors.Is(err, zq.ErrInvalid) {
			t.Errorf("%s: built, with %v", name, err)
			continue
		}
		for _, want := range c.want {
			if strings.Count(err.Error(), want) != 1 {
				t.Errorf("%s: %q is not once in\n%v", name, want, err)
			}
		}
		if got := strings.Count(err.Error(), "\n") + 1; got != len(c.want)-1 {
			t.Errorf("%s: %d faults, want %d:\n%v", name, got, len(c.want)-1, err)
		}
	}
}
