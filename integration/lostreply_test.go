package integration_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/effect"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// nth picks the n-th of the commands that match, from 1.
func nth(match zqt.Match, n int) zqt.Match {
	seen := 0
	return func(cmd []string) bool {
		if !match(cmd) {
			return false
		}
		seen++
		return seen == n
	}
}

// journey takes messages through every kind of write, one call an outcome, over a proxy that disturbs one.
type journey struct {
	*trial
	proxy *zqt.FaultProxy
	rdb   *redis.Client // through the proxy; gives up soon, and repeats nothing by itself
	mu    sync.Mutex
	runs  map[string][]int
}

func newJourney(t *testing.T) *journey {
	t.Helper()
	j := &journey{trial: newTrial(t), runs: map[string][]int{}}
	j.proxy = zqt.Proxy(t, j.srv.Addr())
	j.rdb = j.srv.Client(func(o *redis.Options) {
		o.Addr, o.MaxRetries, o.ReadTimeout = j.proxy.Addr(), -1, 150*time.Millisecond
	})
	return j
}

// handle knows what each message is for.
func (j *journey) handle(ctx context.Context, d *zq.Delivery) (zqt.Op, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := len(j.runs[d.ID])
	j.runs[d.ID] = append(j.runs[d.ID], d.Attempt)
	switch {
	case d.ID == "retry" && n == 0:
		return zqt.Failed, errMixed
	case d.ID == "wait" && n == 0:
		return zqt.Postponed, zq.Postpone(time.Millisecond)
	case d.ID == "dead" && d.Replays == 0:
		return zqt.Dead, zq.Dead("told", nil)
	case d.ID == "effect":
		j.must(d.Then(zq.Message{ID: "then"}))
		return zqt.Succeeded, d.Effect(effect.IncrBy("effects", 1))
	case d.ID == "mark":
		if err := d.Checkpoint(ctx, effect.IncrBy("marks", 1)); err != nil {
			j.t.Errorf("checkpoint: %v", err)
		}
	}
	return zqt.Succeeded, nil
}

// travel does it all, and checks that nothing is lost, doubled, reordered or charged.
func (j *journey) travel() {
	j.t.Helper()
	p := j.producer(j.rdb)
	head := zq.Message{ID: "ack", Key: "k"}
	r, err := p.Enqueue(j.t.Context(), head)
	j.must(err)
	j.noteEnqueued(head, r)
	var batch []zq.Message
	for _, id := range []string{"retry", "dead", "effect", "mark", "wait", "last"} {
		batch = append(batch, zq.Message{ID: id, Key: "k"})
	}
	batch = append(batch, zq.Message{ID: "loose"})
	results, err := p.EnqueueBatch(j.t.Context(), batch)
	j.must(err)
	last := r.Sequence
	for i, got := range results {
		j.noteEnqueued(batch[i], got.Receipt)
		if got.Duplicate || got.Sequence != last+1 && i > 0 || got.Sequence <= last {
			j.t.Errorf("receipt of %s: %+v after sequence %d", batch[i].ID, got, last)
		}
		last = got.Sequence
	}
	c := j.startOn(j.rdb, recorded(j.rec.Add, "w", 5, j.handle), zq.ConsumerConfig{
		Concurrency: 2, ConfirmEach: true, MaxAttempts: 5, RetryDelay: shortRetry,
	})
	zqt.Eventually(j.t, patience, func() bool { return j.depth().Dead == 1 }, "one is dead")
	look, err := zq.NewInspector(j.rdb, j.queue)
	j.must(err)
	j.drained()
	j.rec.Add(zqt.Event{Op: zqt.Replayed, ID: "dead"})
	j.must(look.Replay(j.t.Context(), "dead"))
	j.drained()
	j.stop(c)
	j.arrived()
}

func (j *journey) arrived() {
	j.t.Helper()
	j.over(9, 0)
	zqt.NoViolations(j.t, j.rec.CheckOneHolder(), j.rec.CheckAllDone())
	want := map[string][]int{
		"ack": {1}, "retry": {1, 2}, "dead": {1, 1}, "effect": {1}, "mark": {1}, "wait": {1, 1}, "last": {1}, "loose": {1},
		"then": {1},
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !maps.EqualFunc(j.runs, want, slices.Equal) {
		j.t.Errorf("attempts %v, want %v", j.runs, want)
	}
	for _, name := range []string{"effects", "marks"} {
		if n, err := j.trial.rdb.Get(j.t.Context(), zq.EffectKey(j.queue, name)).Int(); err != nil || n != 1 {
			j.t.Errorf("%s were applied %d times: %v", name, n, err)
		}
	}
	var keyed []string
	for _, id := range ordered(j.rec.Events(), zqt.Started) {
		if id != "loose" && id != "then" {
			keyed = append(keyed, id)
		}
	}
	// The dead one comes back when all is done.
	if order := []string{"ack", "retry", "retry", "dead", "effect", "mark", "wait", "wait", "last", "dead"}; !slices.Equal(keyed, order) {
		j.t.Errorf("the key ran as %v, want %v", keyed, order)
	}
	n := j.counters()
	if n.Enqueued != 9 || n.Acked != 9 || n.Failed != 2 || n.Dead != 1 || n.Replayed != 1 || n.Reaped+n.Refused+n.Duplicates != 0 {
		j.t.Errorf("counters %+v", n)
	}
}

// disturbances are the ways in which one call gets lost.
var disturbances = map[string]func(p *zqt.FaultProxy, m zqt.Match, n int) *zqt.Fault{
	"reply":   (*zqt.FaultProxy).DropReply,
	"command": (*zqt.FaultProxy).DropCommand,
}

// Each call of each script once loses its reply, after the server has acted; and once its way there.
func TestLostReplyAtEachPosition(t *testing.T) {
	t.Parallel()
	positions := map[string]int{"enqueue": 2, "claim": 3, "settle": 9, "checkpoint": 1, "replay": 1}
	for _, how := range slices.Sorted(maps.Keys(disturbances)) {
		for _, script := range slices.Sorted(maps.Keys(positions)) {
			for n := range positions[script] {
				t.Run(fmt.Sprintf("%s/%s/%d", how, script, n+1), func(t *testing.T) {
					t.Parallel()
					j := newJourney(t)
					fault := disturbances[how](j.proxy, nth(j.script(script), n+1), 1)
					j.travel()
					zqt.Wait(t, fault.Done(), patience)
				})
			}
		}
	}
}

// The same with replies that come when the client waits no longer: after 150 ms for those who enqueue and
// replay, after the library's three seconds for a consumer.
func TestLostReplyBecauseItIsLate(t *testing.T) {
	t.Parallel()
	for _, at := range []struct {
		script string
		n      int
	}{{"enqueue", 1}, {"enqueue", 2}, {"replay", 1}, {"claim", 1}, {"settle", 1}, {"settle", 2}, {"settle", 4}, {"checkpoint", 1}} {
		t.Run(fmt.Sprintf("%s/%d", at.script, at.n), func(t *testing.T) {
			t.Parallel()
			j := newJourney(t)
			fault := j.proxy.HoldReply(nth(j.script(at.script), at.n))
			j.travel()
			zqt.Wait(t, fault.Done(), patience)
			fault.Release()
		})
	}
}

// A replay looks the letter up first. If that reply is lost nothing has happened, and the caller is told.
func TestLostReplyOfALookUp(t *testing.T) {
	t.Parallel()
	j := newJourney(t)
	j.send(zq.Message{ID: "dead", Key: "k"})
	c := j.startOn(j.trial.rdb, recorded(j.rec.Add, "w", 5, j.handle), zq.ConsumerConfig{})
	zqt.Eventually(t, patience, func() bool { return j.depth().Dead == 1 }, "it is dead")
	look, err := zq.NewInspector(j.rdb, j.queue)
	j.must(err)
	j.proxy.DropReply(j.script("find"), 1)
	if err := look.Replay(t.Context(), "dead"); err == nil || j.counters().Replayed != 0 {
		t.Errorf("replay: %v, %+v", err, j.counters())
	}
	j.must(look.Replay(t.Context(), "dead"))
	j.drained()
	if err := look.Replay(t.Context(), "dead"); !errors.Is(err, zq.ErrNotFound) {
		t.Errorf("replay after the ack: %v", err)
	}
	j.stop(c)
	j.over(1, 0)
}

// A call that was stuck on its way, while its client had asked again and gone on, comes back to life when all
// is over: it changes nothing. A claim that does holds what it takes for a lease; then that runs, uncharged.
func TestLostReplyOfAStuckCall(t *testing.T) {
	t.Parallel()
	for script, lease := range map[string]time.Duration{
		"enqueue": time.Minute, "replay": time.Minute, "checkpoint": time.Minute, "settle": time.Minute, "claim": time.Second,
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			j := newJourney(t)
			calls := j.proxy.Count(j.script(script))
			stuck := j.proxy.Delay(nth(j.script(script), 1), patience)
			p := j.producer(j.rdb, zq.WithDedupeWindow(0)) // no dedupe record helps
			c := j.startOn(j.rdb, recorded(j.rec.Add, "w", 5, j.handle), zq.ConsumerConfig{
				Concurrency: 1, MaxAttempts: 5, Lease: lease,
			})
			look, err := zq.NewInspector(j.rdb, j.queue)
			j.must(err)
			for _, id := range []string{"mark", "dead"} {
				m := zq.Message{ID: id, Key: "k"}
				r, err := p.Enqueue(t.Context(), m)
				j.must(err)
				j.noteEnqueued(m, r)
			}
			zqt.Eventually(t, patience, func() bool { return j.depth().Dead == 1 }, "one is dead")
			j.must(look.Replay(t.Context(), "dead"))
			j.drained()
			if err := look.Replay(t.Context(), "dead"); !errors.Is(err, zq.ErrNotFound) {
				t.Errorf("replay after the ack: %v", err)
			}
			zqt.Wait(t, stuck.Done(), patience)
			if script == "claim" {
				j.stop(c) // nobody else is to take it
				j.send(zq.Message{ID: "last", Key: "k"})
			}
			stuck.Release()
			zqt.Eventually(t, patience, func() bool { return calls.Commands() > 1 && calls.Replies() == calls.Commands() },
				"the server has answered it")
			if script == "claim" {
				zqt.Eventually(t, patience, func() bool { return j.depth().Running == 1 }, "it has claimed")
				j.healthy()
				c = j.start(recorded(j.rec.Add, "w2", 5, j.handle), zq.ConsumerConfig{})
			} else {
				j.send(zq.Message{ID: "last", Key: "k"})
			}
			j.over(3, 0)
			j.stop(c)
			want := map[string][]int{"mark": {1}, "dead": {1, 1}, "last": {1}}
			if !maps.EqualFunc(j.runs, want, slices.Equal) {
				t.Errorf("attempts %v, want %v", j.runs, want)
			}
			if n, err := j.trial.rdb.Get(t.Context(), zq.EffectKey(j.queue, "marks")).Int(); err != nil || n != 1 {
				t.Errorf("marks were applied %d times: %v", n, err)
			}
		})
	}
}
