package integration_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/effect"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// P7: under load one in twenty calls of every script loses its reply after the server has acted, and one in
// forty is lost on its way there. Nothing is lost, doubled or reordered, no message runs more often than its
// handler asks for, and what hangs on an ack happens once.
func TestP7RepeatableWritesUnderLoad(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	proxy := zqt.Proxy(t, x.srv.Addr())
	bare := x.srv.Client(func(o *redis.Options) { o.Addr, o.MaxRetries = proxy.Addr(), -1 })
	retrying := x.srv.Client(func(o *redis.Options) { o.Addr = proxy.Addr() }) // repeats beneath our own repeats
	cfg := zq.ConsumerConfig{Concurrency: 6, MaxAttempts: 100, RetryDelay: shortRetry}
	team := []*zq.Consumer{
		x.startOn(bare, recorded(x.rec.Add, "w1", 100, linked), cfg),
		x.startOn(retrying, recorded(x.rec.Add, "w2", 100, linked), cfg),
	}
	lost := proxy.DropReply(x.unlucky(20), 0)
	cut := proxy.DropCommand(x.unlucky(40), 0)
	out := &sent{}
	var producers sync.WaitGroup
	for name, rdb := range map[string]*redis.Client{"a": bare, "b": retrying} {
		p := x.producer(rdb)
		producers.Go(func() { x.produce(p, traffic{name: name, messages: 700, keys: 20, loose: 30, lone: 60}, out) })
	}
	producers.Wait()
	x.drained()
	lost.Release()
	cut.Release()
	x.stop(team...)

	x.over(2800, 0)
	x.inOrder()
	x.runsAsAsked(2800)
	x.onceEach("acks", 2800)
	if lost.Struck() < 20 || cut.Struck() < 10 {
		t.Errorf("this was no trial: %d replies lost, %d calls", lost.Struck(), cut.Struck())
	}
}

// linked acks with a count by id and, but for follow-ups, with a follow-up. Some fail first, by their id.
func linked(_ context.Context, d *zq.Delivery) (zqt.Op, error) {
	if fails(d.ID) && d.Attempt == 1 {
		return zqt.Failed, errMixed
	}
	if err := d.Effect(effect.HIncrBy("acks", d.ID, 1)); err != nil {
		return zqt.Failed, err
	}
	if !strings.HasPrefix(d.ID, "then-") {
		if err := d.Then(zq.Message{ID: "then-" + d.ID, Key: d.Key}); err != nil {
			return zqt.Failed, err
		}
	}
	return zqt.Succeeded, nil
}

func fails(id string) bool { return strings.HasSuffix(id, "7") }

// unlucky picks one in n calls of the queue's scripts at random.
func (x *trial) unlucky(n int) zqt.Match {
	prefix := x.key("")
	return func(cmd []string) bool {
		return strings.HasPrefix(strings.ToUpper(cmd[0]), "EVAL") && len(cmd) > 3 && strings.HasPrefix(cmd[3], prefix) &&
			x.dice.below(n) == 0
	}
}

// runsAsAsked checks that each message of linked ran once, or twice if it fails first, with honest attempts.
func (x *trial) runsAsAsked(messages int) {
	x.t.Helper()
	runs := map[string][]int{}
	for _, e := range x.rec.Events() {
		if e.Op == zqt.Started {
			runs[e.ID] = append(runs[e.ID], e.Attempt)
		}
	}
	for id, ns := range runs {
		want := []int{1}
		if fails(id) {
			want = []int{1, 2}
		}
		if !slices.Equal(ns, want) {
			x.t.Errorf("%s ran as attempts %v, want %v", id, ns, want)
		}
	}
	if len(runs) != messages {
		x.t.Errorf("%d messages ran, want %d", len(runs), messages)
	}
}

// onceEach checks that an effect has counted each of so many ids once.
func (x *trial) onceEach(name string, messages int) {
	x.t.Helper()
	counts, err := x.rdb.HGetAll(x.t.Context(), zq.EffectKey(x.queue, name)).Result()
	x.must(err)
	for id, n := range counts {
		if n != "1" {
			x.t.Errorf("%s: %s counted %s times", name, id, n)
		}
	}
	if len(counts) != messages {
		x.t.Errorf("%s: %d counted, want %d", name, len(counts), messages)
	}
}

// P7 for each write by itself, sent twice by a client that lost the reply, or twice by intent under one id.
func TestP7RepeatableWritesInTurn(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	proxy := zqt.Proxy(t, x.srv.Addr())
	rdb := x.srv.Client(func(o *redis.Options) { o.Addr, o.MaxRetries = proxy.Addr(), -1 })
	p := x.producer(rdb)
	look, err := zq.NewInspector(rdb, x.queue)
	x.must(err)
	h := recorded(x.rec.Add, "w", 2, func(_ context.Context, d *zq.Delivery) (zqt.Op, error) {
		if d.Replays == 0 {
			return zqt.Failed, errMixed
		}
		return zqt.Succeeded, d.Effect(effect.IncrBy("sum", 1))
	})
	lease := 600 * time.Millisecond // three heartbeats a lease
	for _, name := range []string{"enqueue", "claim", "settle"} {
		proxy.DropReply(x.script(name), 2)
	}
	beats := proxy.DropReply(x.script("heartbeat"), 1)
	for _, id := range []string{"one", "two"} {
		m := zq.Message{ID: id, Key: "k"}
		r, err := p.Enqueue(t.Context(), m)
		x.must(err)
		x.noteEnqueued(m, r)
		if r.Duplicate {
			t.Errorf("its own repeat made %s a duplicate", id)
		}
	}
	c := x.startOn(rdb, h, zq.ConsumerConfig{Lease: lease, MaxAttempts: 2, RetryDelay: shortRetry})
	zqt.Eventually(t, patience, func() bool { return x.depth().Dead == 2 }, "both are dead")
	again := proxy.DropReply(x.script("replay"), 1)
	for _, id := range []string{"one", "two"} {
		x.rec.Add(zqt.Event{Op: zqt.Replayed, ID: id})
		x.must(look.Replay(t.Context(), id))
	}
	x.drained()
	zqt.Wait(t, again.Done(), patience)
	x.stop(c)
	x.over(2, 0)
	x.inOrder()
	if n := x.counters(); n.Failed != 4 || n.Replayed != 2 || n.Dead != 2 || n.Reaped != 0 || n.Duplicates != 0 {
		t.Errorf("counters %+v after %d lost heartbeats", n, beats.Struck())
	}
	if sum, err := x.rdb.Get(t.Context(), zq.EffectKey(x.queue, "sum")).Int(); err != nil || sum != 2 {
		t.Errorf("the effects made %d: %v", sum, err)
	}
}
