package integration_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// patience bounds every wait of the tests on real servers: for a signal that comes in milliseconds, or after
// a lease, on a machine that does many other things.
const patience = 60 * time.Second

// TestMain serves the shared redis-server, and runs the workers that are killed or paused for real.
func TestMain(m *testing.M) {
	zqt.RegisterChild("worker", runWorker)
	os.Exit(zqt.Main(m))
}

// trial is one queue under test, with all that looks at it.
type trial struct {
	t     *testing.T
	srv   *zqt.Server
	rdb   *redis.Client
	queue string
	prod  *zq.Producer
	look  *zq.Inspector
	rec   *zqt.Recorder
	dice  *dice
}

// newTrial makes a queue of the test's own on the shared server.
func newTrial(t *testing.T, opts ...zq.ProducerOption) *trial {
	t.Helper()
	return newTrialOn(t, zqt.Shared(t), opts...)
}

func newTrialOn(t *testing.T, srv *zqt.Server, opts ...zq.ProducerOption) *trial {
	t.Helper()
	x := &trial{t: t, srv: srv, rdb: srv.Client(), queue: zqt.Queue(t), rec: &zqt.Recorder{}, dice: newDice(t)}
	x.prod = x.producer(x.rdb, opts...)
	look, err := zq.NewInspector(x.rdb, x.queue)
	x.must(err)
	x.look = look
	t.Cleanup(x.autopsy)
	return x
}

// autopsy tells of a failed test in what state it has left its queue.
func (x *trial) autopsy() {
	if !x.t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	d, err := x.look.Depth(ctx)
	c, err2 := x.look.Counters(ctx)
	r, err3 := x.look.Verify(ctx, 0)
	x.t.Logf("the queue: %+v\n%+v\n%q %v", d, c, r.Problems, errors.Join(err, err2, err3))
	for k, err := range x.look.Keys(ctx) {
		if err != nil {
			break
		}
		x.t.Logf("key: %+v", k)
	}
}

func (x *trial) must(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

func (x *trial) producer(rdb *redis.Client, opts ...zq.ProducerOption) *zq.Producer {
	x.t.Helper()
	p, err := zq.NewProducer(rdb, x.queue, opts...)
	x.must(err)
	return p
}

// key is the name of one of the queue's keys in Redis, such as "leases".
func (x *trial) key(name string) string {
	return strings.TrimSuffix(zq.EffectKey(x.queue, ""), "x:") + name
}

// send enqueues one message, and notes it in the history.
func (x *trial) send(m zq.Message) zq.Receipt {
	x.t.Helper()
	r, err := x.prod.Enqueue(x.t.Context(), m)
	x.must(err)
	x.noteEnqueued(m, r)
	return r
}

func (x *trial) sendAll(msgs ...zq.Message) []zq.Result {
	x.t.Helper()
	results, err := x.prod.EnqueueBatch(x.t.Context(), msgs)
	x.must(err)
	for i, r := range results {
		x.must(r.Err)
		x.noteEnqueued(msgs[i], r.Receipt)
	}
	return results
}

func (x *trial) noteEnqueued(m zq.Message, r zq.Receipt) {
	if r.Duplicate {
		return
	}
	score := float64(r.Sequence)
	if m.Score != nil {
		score = float64(*m.Score)
	}
	x.rec.Add(zqt.Event{Op: zqt.Enqueued, ID: r.ID, Key: m.Key, Score: score, Seq: r.Sequence})
}

// start runs a consumer until its stop is called, at the latest when the test ends.
func (x *trial) start(h zq.Handler, cfg zq.ConsumerConfig) *zq.Consumer {
	x.t.Helper()
	return x.startOn(x.rdb, h, cfg)
}

func (x *trial) startOn(rdb redis.UniversalClient, h zq.Handler, cfg zq.ConsumerConfig) *zq.Consumer {
	x.t.Helper()
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	c, err := zq.NewConsumer(rdb, x.queue, h, cfg)
	x.must(err)
	x.must(c.Start(x.t.Context()))
	x.t.Cleanup(func() { _ = c.Stop(context.Background()) }) // the test has looked at the error of its own Stop
	return c
}

func (x *trial) stop(cs ...*zq.Consumer) {
	x.t.Helper()
	for _, c := range cs {
		if err := c.Stop(context.Background()); err != nil {
			x.t.Errorf("stop: %v", err)
		}
	}
}

// depth is what is where now.
func (x *trial) depth() zq.Depth {
	x.t.Helper()
	d, err := x.look.Depth(x.t.Context())
	x.must(err)
	return d
}

func (x *trial) counters() zq.Counters {
	x.t.Helper()
	c, err := x.look.Counters(x.t.Context())
	x.must(err)
	return c
}

// drained waits until every message is acked or dead.
func (x *trial) drained() {
	x.t.Helper()
	var last zq.Depth
	ok := eventually(patience, func() bool {
		d, err := x.look.Depth(x.t.Context())
		last = d
		return err == nil && d.Pending+d.Delayed+d.Running+d.Suspect+d.KeysWaiting+d.KeysHeld+d.Claims == 0
	})
	if !ok {
		x.t.Fatalf("not drained: %+v\n%v", last, x.counters())
	}
}

// eventually is zqt.Eventually for those who want to say more about why not.
func eventually(limit time.Duration, cond func() bool) bool {
	timer, tick := time.NewTimer(limit), time.NewTicker(5*time.Millisecond)
	defer timer.Stop()
	defer tick.Stop()
	for !cond() {
		select {
		case <-timer.C:
			return cond()
		case <-tick.C:
		}
	}
	return true
}

// healthy walks all indexes of the queue, and checks that the counters balance: what was enqueued is acked,
// purged or there.
func (x *trial) healthy() {
	x.t.Helper()
	r, err := x.look.Verify(x.t.Context(), 0)
	x.must(err)
	if len(r.Problems) > 0 {
		x.t.Errorf("verify of %d messages:\n  %s", r.Messages, strings.Join(r.Problems, "\n  "))
	}
	// Two readings, between which something may happen.
	var c zq.Counters
	var d zq.Depth
	balanced := eventually(5*time.Second, func() bool {
		c, d = x.counters(), x.depth()
		return c.Enqueued == c.Acked+c.Purged+c.Cancelled+d.Pending+d.Delayed+d.Running+d.Suspect+d.Dead-d.KeysSuspect
	})
	if !balanced {
		x.t.Errorf("counters do not balance: %+v beside %+v", c, d)
	}
}

// over expects that every message is acked or dead, and the books are in order.
func (x *trial) over(enqueued, dead int) {
	x.t.Helper()
	x.drained()
	x.healthy()
	c, d := x.counters(), x.depth()
	if c.Enqueued != int64(enqueued) || c.Acked+c.Purged != int64(enqueued)-d.Dead || int(d.Dead) != dead {
		x.t.Errorf("enqueued %d, acked %d, purged %d, dead %d; want %d enqueued and %d dead", c.Enqueued, c.Acked,
			c.Purged, d.Dead, enqueued, dead)
	}
}

// dice are random, safe for concurrent use, and say their seed when the test fails.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

// newDice takes its seed from ZQ_SEED, if that is set. Goroutines and processes still come as they come.
func newDice(t *testing.T) *dice {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("ZQ_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("ZQ_SEED=%d", seed)
	return dicedBy(seed)
}

func dicedBy(seed uint64) *dice { return &dice{r: rand.New(rand.NewPCG(seed, 0))} }

// percent is true p times of a hundred.
func (d *dice) percent(p int) bool { return d.below(100) < p }

func (d *dice) below(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

func (d *dice) between(least, most int) int { return least + d.below(most-least+1) }

// ordered gives the ids of a history's events of one kind, in their order.
func ordered(events []zqt.Event, op zqt.Op) []string {
	var ids []string
	for _, e := range events {
		if e.Op == op {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

func sorted(ids []string) []string {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return ids
}
