package deadletter_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware/deadletter"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/effect"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// A message that dies goes to the other queue as it is, with its story in headers, and is acked without what its
// handler attached.
func TestToQueue(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	graves := zqtest.Queue(t)
	p, _ := x.other(graves)
	x.start(x.guard(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		x.must(d.Effect(effect.Set("paid", "1")))
		x.must(d.Then(zq.Message{ID: "receipt"}))
		d.Body, d.Key = []byte("decrypted"), "another"
		return zq.Dead("fraud", errors.New(strings.Repeat("é", 1000)))
	}), deadletter.RouteRest(deadletter.ToQueue(p, graves))))
	body := "\x00\xff\r\n\x01{"
	r, err := x.prod.Enqueue(t.Context(), zq.Message{
		ID: "m", Kind: "order", Key: "k\xff", ContentType: "application/x", Body: []byte(body),
		Headers: map[string]string{"tenant": "7", deadletter.HeaderReason: "an earlier one"},
	})
	x.must(err)
	d := zqtest.Wait(t, x.received(graves), limit)
	if want := fmt.Sprintf("dead/%s/%d.0/m", x.queue, r.Sequence); d.ID != want {
		t.Errorf("id %q, want %q", d.ID, want)
	}
	if d.Kind != "order" || d.Key != "k\xff" || d.ContentType != "application/x" || string(d.Body) != body {
		t.Errorf("came as %+v", d)
	}
	if diff := cmp.Diff(map[string]string{
		"tenant": "7", deadletter.HeaderID: "m", deadletter.HeaderQueue: x.queue, deadletter.HeaderReason: "fraud",
		deadletter.HeaderAttempts: "1", deadletter.HeaderError: strings.Repeat("é", 512),
	}, d.Headers); diff != "" {
		t.Error(diff)
	}
	if l := x.letter(); l.To != graves || l.Kept || l.Reason != "fraud" {
		t.Errorf("told %+v", l)
	}
	x.drained()
	x.dead()
	if n, err := x.rdb.Exists(t.Context(), zq.EffectKey(x.queue, "paid")).Result(); n != 0 || err != nil {
		t.Errorf("an effect of the dead message happened: %v", err)
	}
	if c := x.counters(); c.Enqueued != 1 || c.Acked != 1 {
		t.Errorf("counters %+v", c)
	}
}

func (x *trial) counters() zq.Counters {
	x.t.Helper()
	c, err := x.look.Counters(x.t.Context())
	x.must(err)
	return c
}

// Reasons go their own ways; KeepToo leaves a dead letter; the zero Target and the own queue are the dead letters.
func TestRoutes(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	fraud, rest := zqtest.Queue(t), zqtest.Queue(t)
	toFraud, _ := x.other(fraud)
	toRest, _ := x.other(rest)
	x.start(x.guard(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error { return zq.Dead(d.Kind, errBoom) }),
		deadletter.Route("fraud", deadletter.ToQueue(toFraud, fraud, deadletter.KeepToo())),
		deadletter.Route("local", deadletter.Target{}),
		deadletter.Route("own", deadletter.ToQueue(x.prod, x.queue)),
		deadletter.RouteRest(deadletter.ToQueue(toRest, rest)),
	))
	for _, kind := range []string{"fraud", "local", "own", "other"} {
		x.send(zq.Message{ID: kind, Kind: kind})
	}
	x.drained()
	x.dead("fraud fraud", "local local", "own own")
	if d := zqtest.Wait(t, x.received(fraud), limit); d.Kind != "fraud" {
		t.Errorf("%s came to fraud", d.Kind)
	}
	if d := zqtest.Wait(t, x.received(rest), limit); d.Kind != "other" {
		t.Errorf("%s came to the rest", d.Kind)
	}
	for range 4 {
		l := x.letter()
		if want := map[string]string{"fraud": fraud, "other": rest}[l.Reason]; l.To != want || l.Kept != (l.Reason != "other") {
			t.Errorf("told %+v, want to %q", l, want)
		}
	}
}

// Plain members go too, those with bytes that no id may have included.
func TestPlainMembersGoToo(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	graves := zqtest.Queue(t)
	p, _ := x.other(graves)
	members := map[string]bool{"job-1": true, "\xff\xfe": true, strings.Repeat("long ", 100): true}
	for m := range members {
		x.must(x.rdb.ZAdd(t.Context(), "zq:{"+x.queue+"}:ready", redis.Z{Score: 1, Member: m}).Err())
	}
	x.start(x.guard(always(zq.Dead("bad", errBoom)), deadletter.RouteRest(deadletter.ToQueue(p, graves))))
	got := x.received(graves)
	for range members {
		d := zqtest.Wait(t, got, limit)
		if !members[string(d.Body)] || !strings.HasPrefix(d.ID, "dead/"+x.queue+"/0.0/") {
			t.Errorf("came %q as %q", d.Body, d.ID)
		}
	}
	x.drained()
	x.dead()
}

// The headers that are added never make a message too big; what matters most stays longest.
func TestHeadersFit(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	graves := zqtest.Queue(t)
	p, _ := x.other(graves)
	x.start(x.guard(always(zq.Dead("bad", errBoom)), deadletter.RouteRest(deadletter.ToQueue(p, graves))))
	got := x.received(graves)
	many := func(n int) map[string]string {
		h := map[string]string{}
		for i := range n {
			h[fmt.Sprint("h", i)] = "v"
		}
		return h
	}
	big := func(left int) map[string]string {
		return map[string]string{"big": strings.Repeat("x", zq.MaxHeaderBytes-len("big")-left)}
	}
	id, queue := len(deadletter.HeaderID)+1, len(deadletter.HeaderQueue)+len(x.queue)
	for _, c := range []struct {
		have map[string]string
		ours string
	}{
		{many(zq.MaxHeaders), ""},
		{many(zq.MaxHeaders - 2), "id queue"},
		{many(zq.MaxHeaders - 5), "id queue reason attempts error"},
		{big(0), ""},
		{big(id + queue - 1), "id"},
		{big(id + queue), "id queue"},
		{big(id + queue + len("zq-dead-reasonbad")), "id queue reason"},
	} {
		x.send(zq.Message{ID: "m", Headers: c.have})
		d := zqtest.Wait(t, got, limit)
		var ours []string
		for _, name := range []string{
			deadletter.HeaderID, deadletter.HeaderQueue, deadletter.HeaderReason, deadletter.HeaderAttempts, deadletter.HeaderError,
		} {
			if _, ok := d.Headers[name]; ok {
				ours = append(ours, strings.TrimPrefix(name, "zq-dead-"))
			}
			delete(d.Headers, name)
		}
		if s := strings.Join(ours, " "); s != c.ours {
			t.Errorf("with %d headers: %q, want %q", len(c.have), s, c.ours)
		}
		if !cmp.Equal(d.Headers, c.have) {
			t.Errorf("%d headers came back as %d", len(c.have), len(d.Headers))
		}
		x.drained()
		x.must(x.rdb.Del(t.Context(), "zq:{"+x.queue+"}:done").Err()) // the same id once more, a later message
	}
	x.dead()
}

// What a target refuses for good stays with its own queue, and says so.
func TestRefusedStaysLocal(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	graves := zqtest.Queue(t)
	p, err := zq.NewProducer(x.rdb, graves, zq.WithMaxBody(3))
	x.must(err)
	x.start(x.guard(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		if d.ID == "bare" {
			return zq.Dead("bad", nil)
		}
		return zq.Dead("bad", errBoom)
	}), deadletter.RouteRest(deadletter.ToQueue(p, graves))))
	x.send(zq.Message{ID: "m", Body: []byte("four")}, zq.Message{ID: "bare", Body: []byte("four")})
	x.drained()
	x.dead("m bad", "bare bad")
	for id, before := range map[string]string{"m": "boom (", "bare": ""} {
		l, err := x.look.DeadLetter(t.Context(), id)
		x.must(err)
		if !strings.HasPrefix(l.Error, before) || !strings.Contains(l.Error, "queue "+graves+" refused it") {
			t.Errorf("%s: error %q", id, l.Error)
		}
	}
	for range 2 {
		if l := x.letter(); l.To != "" || !l.Kept {
			t.Errorf("told %+v", l)
		}
	}
}

// flaky is a target that is down for a while, in all the ways there are.
type flaky struct {
	p     zq.Enqueuer
	fails int64
	calls atomic.Int64
}

func (f *flaky) Enqueue(ctx context.Context, m zq.Message) (zq.Receipt, error) {
	switch n := f.calls.Add(1); {
	case n > f.fails:
		return f.p.Enqueue(ctx, m)
	case n%3 == 0:
		panic("no producer")
	case n%3 == 1:
		<-ctx.Done()
		return zq.Receipt{}, context.Cause(ctx)
	}
	return zq.Receipt{}, zq.ErrOutcomeUnknown
}

// While the target is down the message waits, uncharged and in its place, and then it goes there. The key's next
// message does not pass it.
func TestTargetDown(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	graves := zqtest.Queue(t)
	p, _ := x.other(graves)
	f := &flaky{p: p, fails: 5}
	var log strings.Builder
	attempts, done := make(chan int, 100), make(chan struct{})
	x.start(x.guard(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		if d.ID == "behind" {
			close(done)
			return nil
		}
		attempts <- d.Attempt
		return errBoom
	}), deadletter.RouteRest(deadletter.ToQueue(f, graves)), deadletter.SendTimeout(20*time.Millisecond), deadletter.Logger(lines(&log))),
		func(c *zq.ConsumerConfig) { c.MaxAttempts = 2 })
	x.send(zq.Message{ID: "m", Key: "k"}, zq.Message{ID: "behind", Key: "k"})
	d := zqtest.Wait(t, x.received(graves), limit)
	zqtest.Wait(t, done, limit)
	x.drained()
	if d.Headers[deadletter.HeaderID] != "m" || d.Headers[deadletter.HeaderAttempts] != "2" {
		t.Errorf("came with %q", d.Headers)
	}
	if n := f.calls.Load(); n != 6 {
		t.Errorf("tried %d times, want 6", n)
	}
	for i := range 7 {
		if got, want := zqtest.Wait(t, attempts, limit), min(i+1, 2); got != want {
			t.Errorf("run %d was attempt %d, want %d", i, got, want)
		}
	}
	if c := x.counters(); c.Failed != 1 || c.Dead != 0 {
		t.Errorf("counters %+v", c)
	}
	x.letter()
	x.noLetter()
	x.must(x.stopAll())
	if got := strings.Count(log.String(), "level=WARN"); got != 1 || strings.Count(log.String(), "level=INFO") != 1 {
		t.Errorf("logged\n%s", log.String())
	}
}

// Replies are lost on the way to the target's Redis: each message is there exactly once.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	const n = 40
	x := newTrial(t)
	graves := zqtest.Queue(t)
	proxy := zqtest.Proxy(t, zqtest.Shared(t).Addr())
	rdb := zqtest.Shared(t).Client(func(o *redis.Options) { o.Addr, o.MaxRetries = proxy.Addr(), -1 })
	p, err := zq.NewProducer(rdb, graves)
	x.must(err)
	calls := 0
	lost := proxy.DropReply(func(cmd []string) bool {
		if !strings.HasPrefix(strings.ToUpper(cmd[0]), "EVAL") {
			return false
		}
		calls++
		return calls%2 == 1
	}, 0)
	x.start(x.guard(always(zq.Dead("bad", errBoom)), deadletter.RouteRest(deadletter.ToQueue(p, graves)),
		deadletter.SendTimeout(60*time.Millisecond)))
	for i := range n {
		x.send(zq.Message{ID: fmt.Sprint("m", i), Key: fmt.Sprint("k", i%7)})
	}
	x.drained()
	lost.Release()
	if lost.Struck() < 5 {
		t.Errorf("this was no trial: %d replies lost", lost.Struck())
	}
	x.dead()
	seen := map[string]bool{}
	got := x.received(graves)
	for range n {
		id := zqtest.Wait(t, got, limit).Headers[deadletter.HeaderID]
		if seen[id] {
			t.Errorf("%s came twice", id)
		}
		seen[id] = true
	}
	_, look := x.other(graves)
	c, err := look.Counters(t.Context())
	x.must(err)
	if c.Enqueued != n {
		t.Errorf("%d enqueued, want %d", c.Enqueued, n)
	}
}
