package sequence_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware/sequence"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// worker is a process of its own that consumes behind the gate until it is killed.
func worker() {
	queue := os.Getenv("TRIAL_QUEUE")
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("TRIAL_REDIS")})
	mw, err := sequence.New(rdb, queue)
	if err != nil {
		panic(err)
	}
	h := mw(zq.HandlerFunc(func(context.Context, *zq.Delivery) error { return nil }))
	c, err := zq.NewConsumer(rdb, queue, h, zq.ConsumerConfig{Lease: 500 * time.Millisecond})
	if err != nil {
		panic(err)
	}
	if err := c.Run(context.Background()); err != nil {
		panic(err)
	}
}

// A worker dies between the record that its message waits and its stepping aside. The message runs again, finds
// since when it waits, and is woken.
func TestCrashAfterTheCheckpoint(t *testing.T) {
	t.Parallel()
	server := zqtest.Shared(t)
	x := newTrial(t, server.Client())
	proxy := zqtest.Proxy(t, server.Addr())
	held := proxy.HoldReply(zqtest.Command("evalsha", "w:2"))
	x.send("k", 2)
	p := zqtest.Child(t, "worker", "TRIAL_QUEUE="+x.queue, "TRIAL_REDIS="+proxy.Addr())
	zqtest.Wait(t, held.Done(), limit)
	p.Kill()
	hash := zq.EffectKey(x.queue, "seq:k")
	before := x.rdb.HGet(t.Context(), hash, "w:2").Val()
	x.start(nil)
	x.eventually(func() bool { return x.told(sequence.Waits) == 1 }, "it waits again")
	if after := x.rdb.HGet(t.Context(), hash, "w:2").Val(); before == "" || after != before {
		t.Errorf("it waits as %q, and did as %q before the crash", after, before)
	}
	x.send("k", 1)
	x.ordered("k", 1, 2)
	if _, highest := x.ran(); highest != 1 {
		t.Errorf("it was charged: attempt %d", highest)
	}
	x.over(2)
}

// Replies of reads, checkpoints and outcomes get lost on the way, and connections with them.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	server := zqtest.Shared(t)
	proxy := zqtest.Proxy(t, server.Addr())
	x := newTrial(t, server.Client())
	all := upTo(40)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	x.rdb = server.Client(func(o *redis.Options) { o.Addr = proxy.Addr() })
	x.start(nil)
	for _, word := range []string{"hset", "n", "w:7", "w:20", "w:33"} {
		proxy.DropReply(zqtest.Command("evalsha", word), 3)
	}
	proxy.DropReply(zqtest.Command("hmget"), 5)
	x.send("k", all...)
	x.ordered("k", upTo(40)...)
	x.over(40)
	if _, highest := x.ran(); highest != 1 {
		t.Errorf("a message was charged: attempt %d", highest)
	}
}

// While the state cannot be read nothing runs and nobody is charged.
func TestRedisOutOfReach(t *testing.T) {
	t.Parallel()
	server := zqtest.Shared(t)
	proxy := zqtest.Proxy(t, server.Addr())
	x := newTrial(t, server.Client())
	through := server.Client(func(o *redis.Options) { o.Addr, o.MaxRetries = proxy.Addr(), -1 })
	told := make(chan sequence.Report, 100)
	mw, err := sequence.New(through, x.queue, sequence.OnOutcome(
		func(_ context.Context, _ *zq.Delivery, r sequence.Report) { told <- r }))
	if err != nil {
		t.Fatal(err)
	}
	proxy.Cut()
	x.consume(mw, nil)
	x.send("k", 1)
	if r := zqtest.Wait(t, told, limit); r.Outcome != sequence.Unavailable {
		t.Errorf("reported %+v", r)
	}
	proxy.Heal()
	x.ordered("k", 1)
	if n, highest := x.ran(); n != 1 || highest != 1 {
		t.Errorf("%d runs, attempt %d", n, highest)
	}
}

// A state that is not ours is a fault that somebody must see: among the dead letters, with the reason in their text.
func TestForeignState(t *testing.T) {
	t.Parallel()
	x := newTrial(t, zqtest.Shared(t).Client())
	x.rdb.Set(t.Context(), zq.EffectKey(x.queue, "seq:string"), "1", 0)
	x.rdb.HSet(t.Context(), zq.EffectKey(x.queue, "seq:hash"), "n", "one")
	x.rdb.Set(t.Context(), zq.EffectKey(x.queue, "seqw:set"), "1", 0)
	x.start(nil)
	x.send("string", 1)
	x.send("hash", 1)
	x.send("set", 2)
	x.dead(id("string", 1)+" "+zq.ReasonAttempts, id("hash", 1)+" "+zq.ReasonAttempts, id("set", 2)+" "+zq.ReasonAttempts)
	if n, _ := x.ran(); n > 0 {
		t.Errorf("%d runs", n)
	}
}

// An operator sets the state while a handler runs: its confirmation is refused, and what is in the store counts.
func TestStateChangedUnderARun(t *testing.T) {
	t.Parallel()
	x := newTrial(t, zqtest.Shared(t).Client())
	x.start(func(d *zq.Delivery) error {
		if n := d.Headers[sequence.Header]; d.Key == "new" && n == "1" || n == "2" {
			x.rdb.HSet(context.Background(), zq.EffectKey(x.queue, "seq:"+d.Key), "n", "5")
		}
		return nil
	})
	x.send("new", 1, 6)
	x.send("known", 1, 2, 6)
	x.over(5)
	for key, want := range map[string][]string{"new": {id("new", 6)}, "known": {id("known", 1), id("known", 6)}} {
		if got := x.log(key); !slices.Equal(got, want) {
			t.Errorf("%q ran %v to their ack, want %v: the rest counts as confirmed by then", key, got, want)
		}
	}
}

func TestHooksMayPanic(t *testing.T) {
	t.Parallel()
	x := newTrial(t, zqtest.Shared(t).Client())
	x.start(nil, sequence.OnOutcome(func(context.Context, *zq.Delivery, sequence.Report) { panic("hook") }))
	x.send("k", 2)
	x.waiting(1)
	x.send("k", 1)
	x.ordered("k", 1, 2)
}

func TestWrongQueueIsToldFromWithin(t *testing.T) {
	t.Parallel()
	mw, err := sequence.New(zqtest.Shared(t).Client(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	err = mw(zq.HandlerFunc(func(context.Context, *zq.Delivery) error { return nil })).Handle(t.Context(),
		&zq.Delivery{Queue: "mail", ID: "m", Key: "k", Headers: map[string]string{sequence.Header: "1"}})
	if err == nil {
		t.Error("a message of another queue was taken")
	}
}

// Many early messages of one key: what is stored grows with them and is gone after them.
func TestManyEarlyArrivals(t *testing.T) {
	t.Parallel()
	x := newTrial(t, zqtest.Redis(t).Client())
	const many = 2000
	batch := make([]zq.Message, 0, many)
	for n := many; n > 1; n-- {
		batch = append(batch, zq.Message{ID: id("k", int64(n)), Key: "k", Headers: map[string]string{sequence.Header: fmt.Sprint(n)}})
	}
	if _, err := x.p.EnqueueBatch(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	x.start(nil)
	x.waiting(many - 1)
	t.Logf("%d early messages have stepped aside after %v", many-1, time.Since(began))
	size := x.rdb.MemoryUsage(t.Context(), zq.EffectKey(x.queue, "seq:k"), 0).Val() +
		x.rdb.MemoryUsage(t.Context(), zq.EffectKey(x.queue, "seqw:k"), 0).Val()
	t.Logf("the state takes %d bytes a message", size/many)
	began = time.Now()
	x.send("k", 1)
	x.ordered("k", upTo(many)...)
	t.Logf("they ran within %v", time.Since(began))
	x.over(many)
	if n := x.rdb.HLen(t.Context(), zq.EffectKey(x.queue, "seq:k")).Val(); n != 1 {
		t.Errorf("%d fields are left, want one", n)
	}
	if _, highest := x.ran(); highest != 1 {
		t.Errorf("a message was charged: attempt %d", highest)
	}
}
