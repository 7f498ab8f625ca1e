package idempotency_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// trial is one queue and one store on a server, and what was seen of both.
type trial struct {
	t     testing.TB
	rdb   *redis.Client
	queue string // also the store's scope
	store *idempotency.RedisStore
	prod  *zq.Producer

	mu       sync.Mutex
	outcomes map[idempotency.Outcome]int
	seen     chan idempotency.Outcome
}

// newTrial makes a queue and a store of the test's own on the shared server.
func newTrial(t testing.TB) *trial {
	t.Helper()
	rdb := zqtest.Shared(t).Client()
	return newTrialOn(t, rdb, rdb)
}

// newTrialOn has the queue on one client and the store on another.
func newTrialOn(t testing.TB, rdb *redis.Client, storeClient redis.UniversalClient) *trial {
	t.Helper()
	x := &trial{
		t: t, rdb: rdb, queue: zqtest.Queue(t), outcomes: map[idempotency.Outcome]int{},
		seen: make(chan idempotency.Outcome, 10_000),
	}
	x.store = newStore(t, storeClient, x.queue)
	p, err := zq.NewProducer(rdb, x.queue)
	x.must(err)
	x.prod = p
	return x
}

func newStore(t testing.TB, rdb redis.UniversalClient, scope string, opts ...idempotency.StoreOption) *idempotency.RedisStore {
	t.Helper()
	s, err := idempotency.NewRedisStore(rdb, scope, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (x *trial) must(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

// note is an OnOutcome hook.
func (x *trial) note(_ context.Context, _ *zq.Delivery, o idempotency.Outcome, _ idempotency.Record) {
	x.mu.Lock()
	x.outcomes[o]++
	x.mu.Unlock()
	select {
	case x.seen <- o:
	default: // a benchmark looks at the counts alone
	}
}

// told expects so many outcomes of a kind.
func (x *trial) told(o idempotency.Outcome, want int) {
	x.t.Helper()
	if got := x.count(o); got != want {
		x.t.Errorf("%d outcomes %s, want %d", got, o, want)
	}
}

func (x *trial) count(o idempotency.Outcome) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.outcomes[o]
}

// until takes outcomes until the one that is awaited.
func (x *trial) until(want idempotency.Outcome) {
	x.t.Helper()
	for {
		if zqtest.Wait(x.t, x.seen, limit) == want {
			return
		}
	}
}

// send enqueues a message that has its business key in the header "order".
func (x *trial) send(id, order string) {
	x.t.Helper()
	_, err := x.prod.Enqueue(x.t.Context(), zq.Message{ID: id, Headers: map[string]string{"order": order}})
	x.must(err)
}

// guard wraps h, with short pauses.
func (x *trial) guard(h zq.HandlerFunc, opts ...idempotency.Option) zq.Handler {
	x.t.Helper()
	all := append([]idempotency.Option{
		idempotency.OnOutcome(x.note), idempotency.BusyDelay(time.Millisecond, 20*time.Millisecond),
		idempotency.Logger(slog.New(slog.DiscardHandler)),
	}, opts...)
	mw, err := idempotency.New(x.store, idempotency.FromHeader("order"), all...)
	x.must(err)
	return mw(h)
}

// start runs a consumer until the test ends.
func (x *trial) start(h zq.Handler, changes ...func(*zq.ConsumerConfig)) *zq.Consumer {
	x.t.Helper()
	cfg := zq.ConsumerConfig{
		Logger:     slog.New(slog.DiscardHandler),
		RetryDelay: func(*zq.Delivery, error) time.Duration { return time.Millisecond },
	}
	for _, change := range changes {
		change(&cfg)
	}
	c, err := zq.NewConsumer(x.rdb, x.queue, h, cfg)
	x.must(err)
	x.must(c.Start(x.t.Context()))
	x.t.Cleanup(func() { _ = c.Stop(context.Background()) })
	return c
}

// drained waits until no message is left but dead ones, whose number it gives.
func (x *trial) drained() int64 {
	x.t.Helper()
	look, err := zq.NewInspector(x.rdb, x.queue)
	x.must(err)
	var d zq.Depth
	zqtest.Eventually(x.t, limit, func() bool {
		d, err = look.Depth(x.t.Context())
		return err == nil && d.Pending+d.Delayed+d.Running+d.Suspect+d.Claims == 0
	}, "an empty queue")
	return d.Dead
}

// record is the record of a business key of the trial's queue.
func (x *trial) record(order string) idempotency.Record {
	x.t.Helper()
	r, err := x.store.Look(x.t.Context(), idempotency.Name{Scope: x.queue, Key: order})
	x.must(err)
	return r
}

// keys are the store's keys in Redis.
func (x *trial) keys() []string {
	x.t.Helper()
	keys, err := x.rdb.Keys(x.t.Context(), "zq:{idem/"+x.queue+"/*").Result()
	x.must(err)
	return keys
}

// tally counts the runs of a handler.
type tally struct{ n atomic.Int64 }

func (c *tally) handle(context.Context, *zq.Delivery) error {
	c.n.Add(1)
	return nil
}

func (c *tally) want(t testing.TB, n int64) {
	t.Helper()
	if got := c.n.Load(); got != n {
		t.Errorf("the handler ran %d times, want %d", got, n)
	}
}

func order(i int) string { return fmt.Sprint("order-", i) }
