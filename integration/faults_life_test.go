package integration_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// cutOff starts a consumer that has claimed all messages there are, cannot reach Redis any more, and ends with
// the test. Its handler waits in the first of them.
func (x *trial) cutOff(lease time.Duration, want int64) {
	x.t.Helper()
	proxy, inside := zqt.Proxy(x.t, x.srv.Addr()), make(chan struct{}, 100)
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr(), MaxRetries: -1})
	x.t.Cleanup(func() { rdb.Close() })
	x.startOn(rdb, zq.HandlerFunc(func(ctx context.Context, _ *zq.Delivery) error {
		inside <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}), zq.ConsumerConfig{Concurrency: int(want), Lease: lease, DrainTime: time.Millisecond, Grace: time.Millisecond})
	for range want {
		zqt.Wait(x.t, inside, patience)
	}
	proxy.Cut()
}

// B33: a worker goes away with five messages, and whoever looks after the queue finds them first and loses none.
func TestFaultB33TheDeadWorkersMessages(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	want := map[string]bool{}
	for i := range 5 {
		id := fmt.Sprint("m", i)
		want[id] = true
		x.send(zq.Message{ID: id, Key: []string{"", "k0", "k1"}[min(i, 2)] + fmt.Sprint(i)})
	}
	x.cutOff(300*time.Millisecond, 5)
	got := x.echoes()
	for range 5 {
		d := zqt.Wait(t, got, patience)
		if !want[d.ID] || d.Attempt != 1 {
			t.Errorf("%s came, attempt %d", d.ID, d.Attempt)
		}
		delete(want, d.ID)
	}
	x.over(5, 0)
	if c := x.counters(); c.Reaped == 0 || c.Rescued < 5 {
		t.Errorf("%+v", c)
	}
}

// B45: what cannot be read is a dead letter also when it comes by way of a worker that died, and holds up nobody.
func TestFaultB45UnreadableAfterADeath(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	for _, id := range []string{"bad", "gone", "good", "fine"} {
		x.send(zq.Message{ID: id, Key: map[string]string{"bad": "k1", "gone": "k2"}[id]})
	}
	x.send(zq.Message{ID: "behind", Key: "k1"})
	x.cutOff(300*time.Millisecond, 4)
	x.hset("msg", "bad", x.rdb.HGet(t.Context(), x.key("msg"), "bad").Val()+"\xff\xff")
	x.hdel("msg", "gone")
	got := x.echoes()
	var ran []string
	for range 3 {
		ran = append(ran, zqt.Wait(t, got, patience).ID)
	}
	if slices.Sort(ran); !slices.Equal(ran, []string{"behind", "fine", "good"}) {
		t.Errorf("%q ran", ran)
	}
	zqt.Eventually(t, patience, func() bool { d := x.depth(); return d.Dead == 2 && d.Claims == 0 }, "the others are dead letters")
	letters, err := x.look.DeadLetters(t.Context(), time.Time{}, 10)
	x.must(err)
	for _, l := range letters {
		if l.Reason != zq.ReasonEnvelope || l.Losses != 0 {
			t.Errorf("%+v", l)
		}
	}
}

// B35: each consumer's own limits count for what it runs: a short lease and a short run time of another on the
// same queue do not touch it.
func TestFaultB35OwnLimits(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	started, done := make(chan *zq.Delivery, 10), make(chan struct{})
	slow := x.start(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		started <- d
		<-done
		return nil
	}), zq.ConsumerConfig{Lease: time.Hour, MaxRun: zq.Unlimited})
	x.send(zq.Message{ID: "long", Key: "k"})
	zqt.Wait(t, started, patience)
	proxy := zqt.Proxy(t, x.srv.Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
	t.Cleanup(func() { rdb.Close() })
	reaps := proxy.Count(x.script("reap"))
	quick := x.startOn(rdb, zq.HandlerFunc(func(context.Context, *zq.Delivery) error { return nil }),
		zq.ConsumerConfig{Lease: zq.MinLease, MaxRun: time.Millisecond, Grace: time.Millisecond})
	x.send(zq.Message{ID: "behind", Key: "k"})
	zqt.Eventually(t, patience, func() bool { return reaps.Replies() > 20 }, "the quick one has looked after the queue")
	if s := slow.Stats(); s.Lost+s.Taken > 0 || s.Running != 1 || len(started) > 0 {
		t.Errorf("%+v", s)
	}
	close(done)
	x.over(2, 0)
	if s := quick.Stats(); s.Taken > 0 {
		t.Errorf("%+v", s)
	}
}

// B36: the heart beats for a handler that hangs, but not for ever: it loses its message, is seen to be deaf,
// and what it does later counts no more.
func TestFaultB36HungHandler(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	hung, later, ended := make(chan error, 1), make(chan *zq.Delivery, 10), make(chan struct{})
	c := x.start(zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
		if d.ID == "a" && d.Attempt == 1 {
			<-ctx.Done()
			hung <- context.Cause(ctx)
			<-ended
			return zq.Dead("too late", nil)
		}
		later <- d
		return nil
	}), zq.ConsumerConfig{Concurrency: 2, MaxRun: 100 * time.Millisecond, Grace: 50 * time.Millisecond, RetryDelay: shortRetry})
	x.send(zq.Message{ID: "a", Key: "k"})
	x.send(zq.Message{ID: "b", Key: "k"})
	if cause := zqt.Wait(t, hung, patience); !errors.Is(cause, zq.ErrTimeout) {
		t.Errorf("its context ended with %v", cause)
	}
	if d := zqt.Wait(t, later, patience); d.ID != "a" || d.Attempt != 2 || !strings.Contains(d.LastError, "run time") {
		t.Errorf("then came %+v", d)
	}
	if s := c.Stats(); s.Taken != 1 || s.Late != 0 || s.Running < 1 {
		t.Errorf("while it hangs: %+v", s)
	}
	close(ended)
	zqt.Eventually(t, patience, func() bool { return c.Stats().Late >= 1 }, "it returned after all")
	x.drained()
	x.healthy()
	if d := x.depth(); d.Dead != 0 {
		t.Error("a verdict that came too late was recorded")
	}
}

// B43: a delay is computed from the stored attempt, so that a new process goes on where the last one was, and
// one of an hour or of ten years does not turn retries off.
func TestFaultB43StoredAttempts(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	asked := make(chan int, 10)
	failing := zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		switch d.ID {
		case "hour":
			return zq.RetryAfter(time.Hour, errMixed)
		case "for ever":
			return zq.RetryAfter(math.MaxInt64, errMixed)
		}
		return errMixed
	})
	policy := func(d *zq.Delivery, _ error) time.Duration {
		asked <- d.Attempt
		return time.Hour
	}
	x.sendAll(zq.Message{ID: "hour"}, zq.Message{ID: "for ever"}, zq.Message{ID: "again"})
	for attempt := 1; attempt <= 4; attempt++ {
		c := x.start(failing, zq.ConsumerConfig{RetryDelay: policy})
		if got := zqt.Wait(t, asked, patience); got != attempt {
			t.Errorf("the policy was asked about attempt %d, want %d", got, attempt)
		}
		zqt.Eventually(t, patience, func() bool { d := x.depth(); return d.Delayed == 3 && d.Claims == 0 }, "all wait")
		x.stop(c)
		info, err := x.look.Message(t.Context(), "again")
		if err != nil || info.Attempts != attempt || info.State != zq.StateRetry || !near(info.Due, time.Hour) {
			t.Errorf("%+v, %v", info, err)
		}
		x.dueNow("again")
	}
	for id, want := range map[string]time.Duration{"hour": time.Hour, "for ever": zq.MaxDelay} {
		info, err := x.look.Message(t.Context(), id)
		if err != nil || info.Attempts != 1 || !near(info.Due, want) {
			t.Errorf("%s: %+v, %v", id, info, err)
		}
	}
}

// near tells whether an instant is so far away, give or take the time this test takes.
func near(at time.Time, away time.Duration) bool {
	return math.Abs(float64(time.Until(at)-away)) < float64(2*time.Minute)
}

// B46 and B47: nothing for a payload, nothing for a kind, nobody for a kind: a verdict, not a crash, also when
// they are there as a consumer starts and when they come back from the dead.
func TestFaultB46B47EmptyThings(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	type order struct{ ID string }
	mux, err := zq.NewMux(
		zq.NewKind[order]("order").Handle(func(context.Context, *zq.Delivery, order) error { return nil }),
		zq.NewKind[*order]("pointer").Handle(func(_ context.Context, _ *zq.Delivery, o *order) error {
			if o == nil {
				return nil
			}
			return errMixed
		}),
		zq.NewKind[[]byte]("raw", zq.WithCodec(zq.Raw{})).Handle(func(context.Context, *zq.Delivery, []byte) error { return nil }))
	x.must(err)
	reasons := map[string]string{
		"zero": zq.ReasonNoHandler, "no kind": zq.ReasonNoHandler, "unknown kind": zq.ReasonNoHandler, "no body": zq.ReasonDecode,
		"empty body": zq.ReasonDecode, "no body for a pointer": zq.ReasonDecode,
	}
	x.sendAll(
		zq.Message{ID: "zero"}, zq.Message{ID: "no kind", Body: []byte("{}")}, zq.Message{ID: "unknown kind", Kind: "Order", Body: []byte("{}")},
		zq.Message{ID: "no body", Kind: "order"}, zq.Message{ID: "empty body", Kind: "order", Body: []byte{}},
		zq.Message{ID: "no body for a pointer", Kind: "pointer"}, zq.Message{ID: "null", Kind: "order", Body: []byte("null")},
		zq.Message{ID: "null for a pointer", Kind: "pointer", Body: []byte("null")}, zq.Message{ID: "nothing", Kind: "raw"})
	for range 2 {
		c := x.start(mux, zq.ConsumerConfig{})
		x.over(9, len(reasons))
		x.stop(c)
		for id, want := range reasons {
			l, err := x.look.DeadLetter(t.Context(), id)
			if err != nil || l.Reason != want || l.Attempts != 1 {
				t.Errorf("%s: %+v, %v", id, l, err)
			}
			x.must(x.look.Replay(t.Context(), id))
		}
	}
}

// B48: bodies from nothing to a mebibyte, alone and in batches larger than a step, come back byte for byte; what
// is too large is an error that does not repeat it.
func TestFaultB48Sizes(t *testing.T) {
	t.Parallel()
	x := newTrialOn(t, zqt.Redis(t))
	body := func(n int) []byte {
		b := bytes.Repeat(everyByte(), n/256+1)
		return b[:n]
	}
	var bad atomic.Int64
	c := x.start(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		var n int
		if _, err := fmt.Sscan(d.Kind, &n); err != nil || !bytes.Equal(d.Body, body(n)) {
			bad.Add(1)
		}
		return nil
	}), zq.ConsumerConfig{})
	sizes := []int{0, 1, 127, 128, 16_383, 16_384, 65_535, 65_536, 1<<20 - 1, 1 << 20}
	var batch []zq.Message
	for _, n := range sizes {
		x.send(zq.Message{Kind: fmt.Sprint(n), Body: body(n)})
		for range 3 {
			batch = append(batch, zq.Message{Kind: fmt.Sprint(n), Body: body(n), Key: "k"})
		}
	}
	for range 12 {
		batch = append(batch, zq.Message{Kind: fmt.Sprint(1 << 20), Body: body(1 << 20)})
	}
	x.sendAll(batch...)
	large := x.producer(x.rdb, zq.WithMaxBody(zq.HardMaxBody))
	_, err := large.Enqueue(t.Context(), zq.Message{Kind: fmt.Sprint(20 << 20), Body: body(20 << 20)})
	x.must(err)
	n := len(sizes) + len(batch) + 1
	x.over(n, 0)
	if bad.Load() > 0 || c.Stats().Started != int64(n) {
		t.Errorf("%d of %d bodies are not what was sent", bad.Load(), c.Stats().Started)
	}
	for limit, p := range map[int]*zq.Producer{zq.DefaultMaxBody: x.prod, zq.HardMaxBody: large} {
		_, err := p.Enqueue(t.Context(), zq.Message{Body: bytes.Repeat([]byte("s3cr3t"), limit/6+1)})
		if invalidField(t, "one too large", err, "message.body"); strings.Contains(err.Error(), "s3cr3t") || len(err.Error()) > 200 {
			t.Errorf("the error repeats the body: %.200s", err)
		}
	}
	if _, err := zq.NewProducer(x.rdb, x.queue, zq.WithMaxBody(zq.HardMaxBody+1)); !errors.Is(err, zq.ErrInvalid) {
		t.Errorf("a limit beyond 64 MiB: %v", err)
	}
}

// B52: the context of Run ends under load, before anything else does, over and over.
func TestFaultB52ContextEndsFirst(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	const n = 2000
	x.sendAll(numbered(n, 5)...)
	for round := 0; x.counters().Acked < n; round++ {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second) // the last has less than fifty
		var runs atomic.Int64
		c, err := zq.NewConsumer(x.rdb, x.queue, zq.HandlerFunc(func(ctx context.Context, _ *zq.Delivery) error {
			if runs.Add(1) == 50 {
				cancel()
			}
			return ctx.Err()
		}), zq.ConsumerConfig{Concurrency: 8, DrainTime: time.Millisecond})
		x.must(err)
		if err := c.Run(ctx); err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
		cancel()
		if round > n {
			t.Fatal("it does not get on")
		}
	}
	x.over(n, 0)
}

// B64: due times from ten minutes ago to a second from now, over four consumers: each runs once, not before its
// time, soon after it, and those of a key that are due keep its order.
func TestFaultB64DueTimes(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	const n, keys = 400, 10
	due, seq := map[string]time.Time{}, map[string]int64{}
	var batch []zq.Message
	start := time.Now()
	for i := range n {
		m := zq.Message{ID: fmt.Sprintf("m-%03d", i), Key: fmt.Sprint("k", i%keys)}
		away := time.Duration(x.dice.between(-600_000, 600_000)) * time.Millisecond
		if i%2 == 1 || away > 0 {
			away = time.Duration(x.dice.between(1, 1200)) * time.Millisecond
		}
		due[m.ID] = start.Add(away)
		if m.Due = due[m.ID]; away > 0 && i%4 == 3 {
			m.Due, m.Delay = time.Time{}, away
		}
		batch = append(batch, m)
	}
	for _, r := range x.sendAll(batch...) {
		seq[r.ID] = r.Sequence
	}
	var mu sync.Mutex
	runs, last, latest := map[string]int{}, map[string]int64{}, time.Duration(0)
	h := zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		if now.Before(due[d.ID]) {
			t.Errorf("%s ran %v before its time", d.ID, due[d.ID].Sub(now))
		}
		latest = max(latest, now.Sub(later(due[d.ID], start)))
		if due[d.ID].Before(start) { // those that were due at once
			if seq[d.ID] < last[d.Key] {
				t.Errorf("%s ran out of its key's order", d.ID)
			}
			last[d.Key] = seq[d.ID]
		}
		runs[d.ID]++
		return nil
	})
	for range 4 {
		x.start(h, zq.ConsumerConfig{Concurrency: 3})
	}
	x.over(n, 0)
	mu.Lock()
	defer mu.Unlock()
	for id := range due {
		if runs[id] != 1 {
			t.Errorf("%s ran %d times", id, runs[id])
		}
	}
	if latest > 3*time.Second {
		t.Errorf("one ran %v after it was due", latest)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
