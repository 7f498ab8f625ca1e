package sequence_test

import (
	"context"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware/sequence"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/effect"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// limit bounds every wait of these tests.
const limit = 30 * time.Second

func TestMain(m *testing.M) {
	zqtest.RegisterChild("worker", worker)
	os.Exit(zqtest.Main(m))
}

// trial is one queue with its producer, and what its handlers and the middleware have done.
type trial struct {
	t     *testing.T
	rdb   *redis.Client
	queue string
	p     *zq.Producer
	look  *zq.Inspector
	// prefetch is the consumers' KeyPrefetch, 0 for their default.
	prefetch int

	mu      sync.Mutex
	runs    []string
	highest int // attempt
	reports []sequence.Report
}

func newTrial(t *testing.T, rdb *redis.Client) *trial {
	t.Helper()
	x := &trial{t: t, rdb: rdb, queue: zqtest.Queue(t)}
	var err error
	if x.p, err = zq.NewProducer(rdb, x.queue); err != nil {
		t.Fatal(err)
	}
	if x.look, err = zq.NewInspector(rdb, x.queue); err != nil {
		t.Fatal(err)
	}
	return x
}

// id names a message of a key, whatever bytes that has.
func id(key string, n int64) string {
	if len(key) > 8 {
		key = fmt.Sprint(crc32.ChecksumIEEE([]byte(key)))
	}
	return fmt.Sprintf("%q-%d", key, n)
}

// send enqueues messages of a key with these numbers, in this order.
func (x *trial) send(key string, numbers ...int64) {
	x.t.Helper()
	for _, n := range numbers {
		x.put(zq.Message{ID: id(key, n), Key: key, Headers: map[string]string{sequence.Header: fmt.Sprint(n)}})
	}
}

func (x *trial) put(m zq.Message) {
	x.t.Helper()
	if r, err := x.p.Enqueue(x.t.Context(), m); err != nil || r.Duplicate {
		x.t.Fatalf("enqueue %s: %+v, %v", m.ID, r, err)
	}
}

// start starts a consumer behind the gate, whose handler fails as told and otherwise writes the id down, in the
// order of its key and with its ack. It stops with the test.
func (x *trial) start(fails func(*zq.Delivery) error, opts ...sequence.Option) *zq.Consumer {
	x.t.Helper()
	opts = append(opts, sequence.OnOutcome(func(_ context.Context, _ *zq.Delivery, r sequence.Report) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.reports = append(x.reports, r)
	}))
	mw, err := sequence.New(x.rdb, x.queue, opts...)
	if err != nil {
		x.t.Fatal(err)
	}
	return x.consume(mw, fails)
}

func (x *trial) consume(mw zq.Middleware, fails func(*zq.Delivery) error) *zq.Consumer {
	x.t.Helper()
	h := zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		x.mu.Lock()
		x.runs, x.highest = append(x.runs, d.ID), max(x.highest, d.Attempt)
		x.mu.Unlock()
		if fails != nil {
			if err := fails(d); err != nil {
				return err
			}
		}
		return d.Effect(effect.RPush("log:"+d.Key, d.ID))
	})
	c, err := zq.NewConsumer(x.rdb, x.queue, mw(h), zq.ConsumerConfig{
		Concurrency: 8, MaxAttempts: 3, Lease: 5 * time.Second, KeyPrefetch: x.prefetch,
		RetryDelay: func(*zq.Delivery, error) time.Duration { return time.Millisecond },
	})
	if err != nil {
		x.t.Fatal(err)
	}
	if err := c.Start(context.Background()); err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { x.stop(c) })
	return c
}

func (x *trial) stop(c *zq.Consumer) {
	x.t.Helper()
	if err := c.Stop(context.Background()); err != nil {
		x.t.Errorf("stop: %v", err)
	}
}

// log is what the acked runs of a key have written down.
func (x *trial) log(key string) []string {
	got, err := x.rdb.LRange(context.Background(), zq.EffectKey(x.queue, "log:"+key), 0, -1).Result()
	if err != nil {
		x.t.Error(err)
	}
	return got
}

// ordered waits until the acked runs of a key are exactly these numbers.
func (x *trial) ordered(key string, numbers ...int64) {
	x.t.Helper()
	want := make([]string, len(numbers))
	for i, n := range numbers {
		want[i] = id(key, n)
	}
	x.eventually(func() bool { return len(x.log(key)) >= len(want) }, "%d runs of %q", len(want), key)
	if got := x.log(key); !slices.Equal(got, want) {
		x.t.Fatalf("%q ran %v, want %v", key, got, want)
	}
}

func (x *trial) eventually(cond func() bool, format string, args ...any) {
	x.t.Helper()
	zqtest.Eventually(x.t, limit, cond, fmt.Sprintf(format, args...))
}

// waiting waits until so many numbers of the key k wait in the queue for their predecessors, and nothing runs.
func (x *trial) waiting(n int64) {
	x.t.Helper()
	x.eventually(func() bool {
		d, err := x.look.Depth(context.Background())
		return err == nil && x.state("k").Waiting == n && d.Pending == 0 && d.Running == 0
	}, "%d numbers wait", n)
}

func (x *trial) state(key string) sequence.State {
	s, err := sequence.Look(context.Background(), x.rdb, x.queue, key)
	if err != nil {
		x.t.Error(err)
	}
	return s
}

// dead waits until the dead letters are these, "id reason", in any order.
func (x *trial) dead(want ...string) {
	x.t.Helper()
	slices.Sort(want)
	var got []string
	x.eventually(func() bool {
		got = nil
		for l, err := range x.look.EachDeadLetter(context.Background(), time.Time{}) {
			if err != nil {
				x.t.Fatal(err)
			}
			got = append(got, l.Message.ID+" "+l.Reason)
		}
		slices.Sort(got)
		return len(got) >= len(want)
	}, "%d dead letters", len(want))
	if !slices.Equal(got, want) {
		x.t.Fatalf("dead letters %q, want %q", got, want)
	}
}

// told is how often the middleware has reported an outcome.
func (x *trial) told(o sequence.Outcome) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := 0
	for _, r := range x.reports {
		if r.Outcome == o {
			n++
		}
	}
	return n
}

// ran is how often handlers have run, and the highest attempt of any.
func (x *trial) ran() (n, highest int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.runs), x.highest
}
