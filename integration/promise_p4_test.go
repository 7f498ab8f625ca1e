package integration_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// P4 through retries, postponements, deaths, panics and consumers that come and go: the next message of a key
// starts only after the outcome of the one before it, whoever runs it.
func TestP4OrderPerKeyThroughRetryAndShutdown(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	out := &sent{}
	var producers sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		p := x.producer(x.rdb)
		producers.Go(func() { x.produce(p, traffic{name: name, messages: 1500, keys: 24, lone: 30}, out) })
	}
	lots := mix{Fail: 8, After: 4, Postpone: 5, Dead: 2, Panic: 1}
	cfg := zq.ConsumerConfig{Concurrency: 6, MaxAttempts: 4}
	team := x.hire(3, cfg, lots.fate(x.dice))
	producers.Wait()
	x.drained()
	team.dismiss()

	x.over(3000, int(x.depth().Dead))
	x.inOrder()
	if c := x.counters(); c.Failed < 100 || c.Dead == 0 || c.Reaped != 0 {
		t.Errorf("this was no trial: %+v", c)
	}
}

// inOrder checks the whole history of keyed messages.
func (x *trial) inOrder() {
	x.t.Helper()
	zqt.NoViolations(x.t, x.rec.CheckOrder(), x.rec.CheckOneHolder(), x.rec.CheckAllDone())
}

// P4 through crashes: workers are killed in mid-run with messages claimed ahead, and their leases run out.
func TestP4OrderPerKeyThroughCrashAndLeaseExpiry(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	out := &sent{}
	x.produce(x.prod, traffic{name: "a", messages: 1500, keys: 16, lone: 10}, out)
	lots := mix{Fail: 5, Postpone: 2, Dead: 1}
	// Long enough that a loaded machine does not end it: whoever loses a lease may still be at the key.
	cfg := zq.ConsumerConfig{Concurrency: 3, Lease: 10 * time.Second, MaxAttempts: 6, MaxLosses: 50}
	slow := x.slowly(time.Millisecond, lots.fate(x.dice))
	team := x.hire(1, cfg, slow)
	x.mortal(workerSpec{
		Mix: lots, Concurrency: 8, Lease: 500 * time.Millisecond, MaxAttempts: 6, MaxLosses: 50, Slow: time.Millisecond,
	}, 4, func() bool { return x.counters().Acked > 1300 })
	x.drained()
	team.dismiss()

	x.over(1500, int(x.depth().Dead))
	x.inOrder()
	if c := x.counters(); c.Reaped == 0 || c.Rescued < 20 {
		t.Errorf("this was no trial: %+v", c)
	}
}

// slowly gives a run some length.
func (x *trial) slowly(d time.Duration, f fate) fate {
	return func(ctx context.Context, m *zq.Delivery) (zqt.Op, error) {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
		return f(ctx, m)
	}
}

// P4 by score: a lower one runs first, negative ones too, and equal scores run as they were enqueued, across
// another number of digits in their ids.
func TestP4OrderPerKeyByScoreAndSequence(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	changed, err := x.look.Pause(t.Context())
	x.must(err)
	var msgs []zq.Message
	for i := range 1200 {
		m := zq.Message{ID: fmt.Sprint("job:", i), Key: fmt.Sprint("k", x.dice.below(8))}
		switch x.dice.below(4) {
		case 0:
			m.Score = new(int64) // all equal
		case 1:
			m.Score = new(int64(x.dice.between(-5, 5)))
		case 2:
			m.Score = new([]int64{-zq.MaxScore, zq.MaxScore, -zq.MaxScore + 1, zq.MaxScore - 1}[x.dice.below(4)])
		}
		msgs = append(msgs, m)
	}
	for part := range slices.Chunk(msgs, 50) {
		x.sendAll(part...)
	}
	x.healthy() // each key stands in the queue's order by its head, whatever came later
	lots := mix{Fail: 10, After: 5, Postpone: 5}
	team := x.hire(3, zq.ConsumerConfig{Concurrency: 4, MaxAttempts: 100}, lots.fate(x.dice))
	resumed, err := x.look.Resume(t.Context())
	x.must(err)
	x.drained()
	team.dismiss()
	if !changed || !resumed || len(ordered(x.rec.Events(), zqt.Started)) < 1200 {
		t.Errorf("paused %t, resumed %t", changed, resumed)
	}

	x.over(1200, 0)
	x.inOrder()
	for key, ids := range x.firstStarts() {
		want := slices.Clone(ids)
		scores := map[string]float64{}
		for _, e := range x.rec.Events() {
			if e.Op == zqt.Enqueued {
				scores[e.ID] = e.Score
			}
		}
		slices.SortStableFunc(want, func(a, b string) int { return cmpBy(scores, a, b) })
		if !slices.Equal(ids, want) {
			t.Errorf("key %s first ran as %v", key, ids)
		}
	}
}

// cmpBy orders by score, then by the number in "job:17".
func cmpBy(scores map[string]float64, a, b string) int {
	var i, j int
	_, _ = fmt.Sscanf(a, "job:%d", &i)
	_, _ = fmt.Sscanf(b, "job:%d", &j)
	switch {
	case scores[a] != scores[b] && scores[a] < scores[b], scores[a] == scores[b] && i < j:
		return -1
	}
	return 1
}

// firstStarts gives the ids of each key in the order in which they started first.
func (x *trial) firstStarts() map[string][]string {
	byKey, seen := map[string][]string{}, map[string]bool{}
	for _, e := range x.rec.Events() {
		if e.Op == zqt.Started && !seen[e.ID] {
			seen[e.ID] = true
			byKey[e.Key] = append(byKey[e.Key], e.ID)
		}
	}
	return byKey
}

// P4 while a message waits for its next attempt: nothing of its key runs, as long as it takes, and other keys
// do not wait for it. The same where it postponed itself.
func TestP4OrderPerKeyWaitsForTheRetry(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(time.Duration) error{
		"retry": func(d time.Duration) error { return zq.RetryAfter(d, errMixed) }, "postpone": zq.Postpone,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTrial(t)
			const pause = 1200 * time.Millisecond
			var once sync.Once
			team := x.hire(2, zq.ConsumerConfig{Concurrency: 4, MaxAttempts: 5}, func(_ context.Context, d *zq.Delivery) (zqt.Op, error) {
				err := error(nil)
				if d.ID == "head" {
					once.Do(func() { err = wait(pause) })
				}
				if err != nil {
					return zqt.Postponed, err
				}
				return zqt.Succeeded, nil
			})
			for _, id := range []string{"head", "next", "third"} {
				x.send(zq.Message{ID: id, Key: "k"})
			}
			for i := range 20 {
				x.send(zq.Message{ID: fmt.Sprint("other-", i), Key: fmt.Sprint("o", i%3)})
			}
			zqt.Eventually(t, patience, func() bool { return x.counters().Acked == 20 }, "the other keys are done")
			if d := x.depth(); d.KeysWaiting != 1 || d.Pending != 3 {
				t.Errorf("meanwhile: %+v", d)
			}
			x.over(23, 0)
			team.dismiss()
			x.inOrder()
			var ran []string
			var at []time.Time
			for _, e := range x.rec.Events() {
				if e.Op == zqt.Started && e.Key == "k" {
					ran, at = append(ran, e.ID), append(at, e.At)
				}
			}
			if !slices.Equal(ran, []string{"head", "head", "next", "third"}) || at[1].Sub(at[0]) < pause {
				t.Errorf("%v ran at %v", ran, at)
			}
		})
	}
}

// P4 with ConfirmEach: a crash runs at most one decided message of a key again. The records of this worker
// are slow to arrive, so that without ConfirmEach it would be many.
func TestP4OrderPerKeyConfirmEach(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	proxy := zqt.Proxy(t, x.srv.Addr())
	proxy.Delay(x.script("settle"), 30*time.Millisecond)
	out := &sent{}
	x.produce(x.prod, traffic{name: "a", messages: 240, keys: 6}, out)
	spec := workerSpec{
		Addr: proxy.Addr(), Concurrency: 6, Lease: 700 * time.Millisecond, MaxAttempts: 50, MaxLosses: 50, Confirm: true,
		Tell: true,
	}
	for life := range 3 {
		spec.Name = fmt.Sprint("child.", life)
		p := x.child(spec)
		for range x.dice.between(15, 40) {
			p.Expect("at ", patience)
		}
		x.killed(p, spec.Name)
	}
	c := x.start(recorded(x.rec.Add, "last", 50, acks), zq.ConsumerConfig{Lease: time.Second, MaxAttempts: 50, MaxLosses: 50})
	x.over(240, 0)
	x.stop(c)
	x.inOrder()
	for key, n := range x.reruns() {
		if n > 1 {
			t.Errorf("%s: %d decided messages ran again", key, n)
		}
	}
}

// reruns counts by killed worker and key the messages that it had decided and that ran again elsewhere.
func (x *trial) reruns() map[string]int {
	decided, n := map[string]string{}, map[string]int{}
	for _, e := range x.rec.Events() {
		switch e.Op {
		case zqt.Succeeded:
			decided[e.ID] = e.Worker
		case zqt.Started:
			if by := decided[e.ID]; by != "" && by != e.Worker {
				n[by+" "+e.Key]++
			}
			delete(decided, e.ID)
		}
	}
	return n
}

// P4's documented exception: with SkipKey a failed message comes back late, and the others of its key keep
// their order among themselves.
func TestP4OrderPerKeySkipKey(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	out := &sent{}
	x.produce(x.prod, traffic{name: "a", messages: 800, keys: 8}, out)
	skipping := func(ctx context.Context, d *zq.Delivery) (zqt.Op, error) {
		if d.Attempt == 1 && strings.HasSuffix(d.ID, "3") {
			x.rec.Add(zqt.Event{Op: zqt.Skipped, ID: d.ID})
			return zqt.Failed, zq.RetryAfter(30*time.Millisecond, errMixed)
		}
		return zqt.Succeeded, nil
	}
	cfg := zq.ConsumerConfig{Concurrency: 4, OnFailure: zq.SkipKey}
	team := x.hire(3, cfg, skipping)
	x.drained()
	team.dismiss()
	x.over(800, 0)
	x.inOrder()
	late := 0
	for _, ids := range x.lastStarts() {
		if !slices.IsSorted(ids) {
			late++
		}
	}
	if late != 8 {
		t.Errorf("in %d of 8 keys somebody was passed", late)
	}
}

// lastStarts gives the ids of each key in the order of their last runs.
func (x *trial) lastStarts() map[string][]string {
	byKey := map[string][]string{}
	seen := map[string]bool{}
	for _, e := range slices.Backward(x.rec.Events()) {
		if e.Op == zqt.Started && !seen[e.ID] {
			seen[e.ID] = true
			byKey[e.Key] = append(byKey[e.Key], e.ID)
		}
	}
	for key := range maps.Keys(byKey) {
		slices.Reverse(byKey[key])
	}
	return byKey
}

// P4 with HaltKey: nothing of the key runs after a death until an operator says so, and then in order; other
// keys go on.
func TestP4OrderPerKeyHaltKey(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	var msgs []zq.Message
	for i := range 60 {
		msgs = append(msgs, zq.Message{ID: fmt.Sprintf("m-%02d", i), Key: fmt.Sprint("k", i%3)})
	}
	x.sendAll(msgs...)
	poison := func(_ context.Context, d *zq.Delivery) (zqt.Op, error) {
		if d.ID == "m-09" && d.Replays == 0 { // of k0, with 16 more behind it
			return zqt.Dead, zq.Dead("poison", nil)
		}
		return zqt.Succeeded, nil
	}
	cfg := zq.ConsumerConfig{Concurrency: 4, OnDeath: zq.HaltKey}
	team := x.hire(2, cfg, poison)
	zqt.Eventually(t, patience, func() bool { return x.counters().Acked == 43 && x.depth().KeysHalted == 1 },
		"two keys are done, and three messages of the third")
	x.send(zq.Message{ID: "m-60", Key: "k0"})
	var held []zq.KeyInfo
	for info, err := range x.look.Keys(t.Context()) {
		x.must(err)
		held = append(held, info)
	}
	if len(held) != 1 || held[0].Key != "k0" || held[0].Held != "halted" || held[0].Head != "m-12" || held[0].Waiting != 17 {
		t.Errorf("keys that wait: %+v", held)
	}
	x.healthy()
	x.must(x.look.Replay(t.Context(), "m-09"))
	x.rec.Add(zqt.Event{Op: zqt.Replayed, ID: "m-09"})
	before := len(ordered(x.rec.Events(), zqt.Started))
	changed, err := x.look.ResumeKey(t.Context(), "k0")
	x.must(err)
	again, err := x.look.ResumeKey(t.Context(), "k0")
	x.must(err)
	x.drained()
	team.dismiss()
	if !changed || again {
		t.Errorf("resumed: %t, and again: %t", changed, again)
	}
	x.over(61, 0)
	x.inOrder()
	if starts := ordered(x.rec.Events(), zqt.Started); before != 44 || !slices.IsSorted(starts[before:]) || len(starts) != 62 {
		t.Errorf("%d runs before, then %v", before, starts[before:])
	}
}

// P4 with DeadLetterKey: the rest of the lane follows, in order, each saying why.
func TestP4OrderPerKeyDeadLetterKey(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	var msgs []zq.Message
	for i := range 900 {
		msgs = append(msgs, zq.Message{ID: fmt.Sprintf("m-%03d", i), Key: fmt.Sprint("k", i%2)})
	}
	x.sendAll(msgs...)
	poison := func(_ context.Context, d *zq.Delivery) (zqt.Op, error) {
		if d.ID == "m-010" {
			return zqt.Dead, zq.Dead("poison", errors.New("as sent"))
		}
		return zqt.Succeeded, nil
	}
	team := x.hire(2, zq.ConsumerConfig{Concurrency: 4, OnDeath: zq.DeadLetterKey}, poison)
	zqt.Eventually(t, patience, func() bool { return x.depth().Dead == 445 }, "the lane is dead")
	x.drained()
	team.dismiss()
	x.over(900, 445)
	zqt.NoViolations(t, x.rec.CheckOrder(), x.rec.CheckOnce())
	letters, err := x.look.DeadLetters(t.Context(), time.Time{}, 1000)
	x.must(err)
	for i, l := range letters {
		reason, attempts := zq.ReasonKey, 0
		if i == 0 {
			reason, attempts = "poison", 1
		}
		if want := fmt.Sprintf("m-%03d", 10+2*i); l.Message.ID != want || l.Reason != reason || l.Attempts != attempts {
			t.Errorf("dead letter %d is %s, %s after %d attempts; want %s, %s", i, l.Message.ID, l.Reason, l.Attempts, want, reason)
		}
	}
	x.revived(letters)
}

// revived sends all letters back and sees them run in order.
func (x *trial) revived(letters []zq.DeadLetter) {
	x.t.Helper()
	for _, l := range letters {
		x.must(x.look.Replay(x.t.Context(), l.Message.ID))
	}
	var again zqt.Recorder
	h := recorded(again.Add, "after", 10, acks)
	c := x.startOn(x.srv.Client(func(o *redis.Options) { o.Protocol = 2 }), h, zq.ConsumerConfig{})
	x.over(900, 0)
	x.stop(c)
	if ids := ordered(again.Events(), zqt.Started); len(ids) != len(letters) || !slices.IsSorted(ids) {
		x.t.Errorf("the dead ran again as %v", ids)
	}
}
