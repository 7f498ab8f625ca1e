package ratelimit_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware/ratelimit"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// trial is one queue, and what its limiters were asked and its handlers have run.
type trial struct {
	t     *testing.T
	rdb   *redis.Client
	queue string
	prod  *zq.Producer
	look  *zq.Inspector

	mu       sync.Mutex
	asked    int
	runs     []string // ids
	starts   []time.Time
	attempts []int
}

func newTrial(t *testing.T) *trial {
	t.Helper()
	x := &trial{t: t, rdb: zqtest.Shared(t).Client(), queue: zqtest.Queue(t)}
	var err error
	x.prod, err = zq.NewProducer(x.rdb, x.queue)
	x.must(err)
	x.look, err = zq.NewInspector(x.rdb, x.queue)
	x.must(err)
	return x
}

func (x *trial) must(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

// start runs a consumer behind the limiter until the test ends. h may be nil: success.
func (x *trial) start(l ratelimit.Limiter, h zq.HandlerFunc, opts ...ratelimit.Option) *zq.Consumer {
	x.t.Helper()
	counted := limiterFunc(func(ctx context.Context, name, id string) (time.Duration, error) {
		x.mu.Lock()
		x.asked++
		x.mu.Unlock()
		return l.Reserve(ctx, name, id)
	})
	limited := wrap(x.t, counted, func(ctx context.Context, d *zq.Delivery) error {
		x.mu.Lock()
		x.runs, x.starts = append(x.runs, d.ID), append(x.starts, time.Now())
		x.attempts = append(x.attempts, d.Attempt)
		x.mu.Unlock()
		if h == nil {
			return nil
		}
		return h(ctx, d)
	}, opts...)
	c, err := zq.NewConsumer(x.rdb, x.queue, limited, zq.ConsumerConfig{
		Logger:     slog.New(slog.DiscardHandler),
		RetryDelay: func(*zq.Delivery, error) time.Duration { return time.Millisecond },
	})
	x.must(err)
	x.must(c.Start(x.t.Context()))
	x.t.Cleanup(func() { x.stop(c) })
	return c
}

func (x *trial) stop(c *zq.Consumer) {
	x.t.Helper()
	if err := c.Stop(context.Background()); err != nil {
		x.t.Errorf("stop: %v", err)
	}
}

// send enqueues messages of one key, "" for none, in one call.
func (x *trial) send(key string, ids ...string) {
	x.t.Helper()
	msgs := make([]zq.Message, len(ids))
	for i, id := range ids {
		msgs[i] = zq.Message{ID: id, Key: key}
	}
	_, err := x.prod.EnqueueBatch(x.t.Context(), msgs)
	x.must(err)
}

// settled waits until so many messages are delayed and none is anywhere else.
func (x *trial) settled(delayed int64) {
	x.t.Helper()
	var d zq.Depth
	zqtest.Eventually(x.t, limit, func() bool {
		var err error
		d, err = x.look.Depth(x.t.Context())
		x.must(err)
		return d.Delayed+d.Pending == delayed && d.Running == 0 && d.Claims == 0 && d.Ready == 0
	}, "a queue at rest")
	if d.Dead > 0 {
		x.t.Errorf("%d dead letters", d.Dead)
	}
}

// ran are the ids of the runs so far, in their order.
func (x *trial) ran() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.runs)
}

func (x *trial) questions() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.asked
}

// firstAttempts expects that no run was charged for waiting.
func (x *trial) firstAttempts() {
	x.t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, n := range x.attempts {
		if n != 1 {
			x.t.Errorf("%s ran as attempt %d, want 1", x.runs[i], n)
		}
	}
}

// paced expects that the runs took as long as the limit says; their order in time is that of the list.
func (x *trial) paced(began time.Time, limit float64, burst int) {
	x.t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	slices.SortFunc(x.starts, time.Time.Compare)
	for i, at := range x.starts {
		least := time.Duration(float64(i+1-burst) / limit * float64(time.Second))
		if took := at.Sub(began); took < least-time.Millisecond {
			x.t.Errorf("%d had started after %s, which must take %s", i+1, took, least)
			return
		}
	}
}
