package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// held runs one message whose handler works until enough has happened, and expects that nothing disturbs it.
func (j *journey) held(lease time.Duration, enough func() bool) {
	j.t.Helper()
	began, end := make(chan struct{}), make(chan struct{})
	start, open := sync.OnceFunc(func() { close(began) }), sync.OnceFunc(func() { close(end) })
	h := recorded(j.rec.Add, "w", 5, func(ctx context.Context, _ *zq.Delivery) (zqt.Op, error) {
		start()
		select {
		case <-end:
		case <-ctx.Done():
			j.t.Errorf("its context ended: %v", context.Cause(ctx))
		}
		return zqt.Succeeded, nil
	})
	j.send(zq.Message{ID: "long", Key: "k"})
	j.send(zq.Message{ID: "next", Key: "k"})
	c := j.startOn(j.rdb, h, zq.ConsumerConfig{Concurrency: 1, KeyPrefetch: 1, Lease: lease, MaxAttempts: 5})
	j.t.Cleanup(open)
	zqt.Wait(j.t, began, patience)
	zqt.Eventually(j.t, patience, enough, "enough has happened")
	open()
	j.drained()
	j.stop(c)
	j.over(2, 0)
	j.inOrder()
	zqt.NoViolations(j.t, j.rec.CheckOnce())
	if n := j.counters(); n.Reaped+n.Refused != 0 {
		j.t.Errorf("counters %+v", n)
	}
}

// Heartbeats are asked again, so that a lease outlasts the loss of most of them: four of five here.
func TestLostReplyOfHeartbeats(t *testing.T) {
	t.Parallel()
	for how, disturb := range disturbances {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			j := newJourney(t)
			n := 0
			fault := disturb(j.proxy, func(cmd []string) bool {
				if !j.script("heartbeat")(cmd) {
					return false
				}
				n++
				return n%5 != 0
			}, 0)
			j.held(600*time.Millisecond, func() bool { return fault.Struck() >= 16 })
		})
	}
}

// A reply to the heart that does not come holds it up for a beat, not for longer than the lease: neither that
// of a heartbeat nor that of the upkeep beside it.
func TestLostReplyHoldsUpTheHeart(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"heartbeat", "reap"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			j := newJourney(t)
			beats := j.proxy.Count(j.script("heartbeat"))
			fault := j.proxy.HoldReply(nth(j.script(script), 2))
			j.held(900*time.Millisecond, func() bool { return beats.Commands() >= 5 })
			zqt.Wait(t, fault.Done(), patience)
			fault.Release()
		})
	}
}

// The marker that should have woken a consumer is lost with its reply: the consumer looks by itself.
func TestLostReplyOfTheWakeUp(t *testing.T) {
	t.Parallel()
	j := newJourney(t)
	waits := j.proxy.Count(zqt.Command("BZPOPMIN", j.key("wake")))
	ran := make(chan string, 10)
	c := j.startOn(j.rdb, zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		ran <- d.ID
		return nil
	}), zq.ConsumerConfig{})
	for round := range 3 {
		zqt.Eventually(t, patience, func() bool { return waits.Commands() > waits.Replies() }, "the consumer waits")
		lost := j.proxy.DropReply(zqt.Command("BZPOPMIN", j.key("wake")), 1)
		// The wait that is under way was planned before the fault; this takes it.
		j.send(zq.Message{ID: fmt.Sprint("before-", round)})
		zqt.Wait(t, ran, patience)
		zqt.Eventually(t, patience, func() bool { return waits.Commands() > waits.Replies() }, "the consumer waits anew")
		sent := time.Now()
		j.send(zq.Message{ID: fmt.Sprint("lost-", round)})
		zqt.Wait(t, lost.Done(), patience)
		zqt.Wait(t, ran, 3*time.Second)
		t.Logf("it ran %v after its marker was lost", time.Since(sent))
	}
	j.stop(c)
	j.over(6, 0)
}

// A claim whose reply is lost, and then no word from Redis for longer than the lease: somebody else runs what
// was claimed, and the claimer, when it hears from Redis again, runs none of it.
func TestLostReplyThenAnOutageLongerThanTheLease(t *testing.T) {
	t.Parallel()
	j := newJourney(t)
	const lease = 500 * time.Millisecond
	cfg := zq.ConsumerConfig{Lease: lease, MaxAttempts: 5, Concurrency: 2}
	away := j.startOn(j.rdb, recorded(j.rec.Add, "away", 5, acks), cfg)
	zqt.Eventually(t, patience, func() bool { s, _ := away.Health(); return s == "idle" }, "it waits")
	lost := j.proxy.DropReply(func(cmd []string) bool {
		return j.script("claim")(cmd) && j.depth().Pending > 0
	}, 1)
	j.send(zq.Message{ID: "m-0", Key: "k"})
	j.send(zq.Message{ID: "m-1", Key: "k"})
	zqt.Wait(t, lost.Done(), patience)
	j.proxy.Cut()
	zqt.Eventually(t, patience, func() bool { return j.depth().Running > 0 }, "it has claimed")
	other := j.start(recorded(j.rec.Add, "other", 5, acks), cfg)
	j.drained()
	if n := j.counters(); n.Reaped != 1 {
		t.Errorf("counters %+v", n)
	}
	j.stop(other)
	// What it claims then is a claim like any other: a reply that is lost once more is asked for again.
	settles := j.proxy.DropReply(j.script("settle"), 1)
	j.send(zq.Message{ID: "m-2", Key: "k"})
	j.proxy.Heal()
	zqt.Wait(t, settles.Done(), patience)
	j.drained()
	j.stop(away)
	j.over(3, 0)
	j.inOrder()
	zqt.NoViolations(t, j.rec.CheckOnce())
	if s, n := away.Stats(), j.counters(); n.Refused != 0 || s.Lost != 0 || s.Settled != 1 {
		t.Errorf("stats %+v, counters %+v", s, n)
	}
}

// A batch of several steps loses replies and calls in the middle: the order of its messages stands. When a
// step does not get through at all, the later ones are not sent: they must not overtake it.
func TestLostReplyWithinABatch(t *testing.T) {
	t.Parallel()
	j := newJourney(t)
	p := j.producer(j.rdb)
	batch := make([]zq.Message, 2500)
	for i := range batch {
		batch[i] = zq.Message{ID: fmt.Sprintf("m-%04d", i), Key: "k"}
	}
	through := j.proxy.DropCommand(nth(j.script("enqueue"), 2), 1)
	never := j.proxy.DropCommand(func(cmd []string) bool {
		return j.script("enqueue")(cmd) && slices.Contains(cmd, "m-1500") && j.depth().Pending > 0
	}, 0)
	soon, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	results, err := p.EnqueueBatch(soon, batch)
	if err == nil || !errors.Is(err, zq.ErrOutcomeUnknown) {
		t.Errorf("the batch ended with %v", err)
	}
	for i, r := range results {
		if accepted := r.Err == nil && !r.Duplicate; accepted != (i < 1000) {
			t.Fatalf("result %d: %+v", i, r)
		}
	}
	if n := j.depth().Pending; n != 1000 {
		t.Errorf("%d messages are there", n)
	}
	never.Release()
	through.Release()
	lost := j.proxy.DropReply(nth(j.script("enqueue"), 2), 1)
	results, err = p.EnqueueBatch(t.Context(), batch)
	j.must(err)
	zqt.Wait(t, lost.Done(), patience)
	for i, r := range results {
		if r.Err != nil || r.Duplicate != (i < 1000) {
			t.Fatalf("result %d of the second try: %+v", i, r)
		}
		j.noteEnqueued(batch[i], r.Receipt)
	}
	var first zqt.Recorder
	c := j.start(recorded(first.Add, "w", 5, acks), zq.ConsumerConfig{})
	j.over(2500, 0)
	j.stop(c)
	if ids := ordered(first.Events(), zqt.Started); len(ids) != 2500 || !slices.IsSorted(ids) {
		t.Errorf("%d messages ran, in order: %t", len(ids), slices.IsSorted(ids))
	}
}

// A step that is refused for good stops the batch as well.
func TestLostReplyWithinABatchThatIsRefused(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	x.must(x.rdb.Set(t.Context(), x.key("lane:bad"), "somebody else's", 0).Err())
	batch := make([]zq.Message, 2500)
	for i := range batch {
		batch[i] = zq.Message{ID: fmt.Sprintf("m-%04d", i)}
	}
	batch[1500].Key = "bad"
	results, err := x.prod.EnqueueBatch(t.Context(), batch)
	if !errors.Is(err, zq.ErrWrongType) || errors.Is(err, zq.ErrOutcomeUnknown) {
		t.Errorf("the batch ended with %v", err)
	}
	for i, r := range results {
		if (r.Err == nil) != (i < 1000) {
			t.Fatalf("result %d: %+v", i, r)
		}
	}
	if n := x.depth().Pending; n != 1000 {
		t.Errorf("%d messages are there", n)
	}
	x.must(x.rdb.Del(t.Context(), x.key("lane:bad")).Err())
	_, err = x.prod.EnqueueBatch(t.Context(), batch)
	x.must(err)
	if n := x.depth().Pending; n != 2500 {
		t.Errorf("%d messages are there", n)
	}
	x.healthy()
}

// For some seconds calls and replies are lost at random, others are late, and connections are cut, with
// leases short enough to be lost now and then.
func TestLostReplyUnderLoad(t *testing.T) {
	t.Parallel()
	j := newJourney(t)
	cfg := zq.ConsumerConfig{Concurrency: 8, MaxAttempts: 1000, MaxLosses: 100, Lease: time.Second, RetryDelay: shortRetry}
	lots := mix{Fail: 5, After: 2, Postpone: 4}
	var team []*zq.Consumer
	for i := range 3 {
		h := recorded(j.rec.Add, fmt.Sprint("w", i), 1000, lots.fate(j.dice))
		team = append(team, j.startOn(j.rdb, h, cfg))
	}
	faults := []*zqt.Fault{
		j.proxy.DropReply(j.unlucky(25), 0), j.proxy.DropCommand(j.unlucky(50), 0), j.proxy.Delay(j.unlucky(20), 20*time.Millisecond),
	}
	watch := j.watch()
	over, cancel := context.WithCancel(t.Context())
	defer cancel()
	began, out := time.Now(), &sent{}
	var producers sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		p := j.producer(j.srv.Client(func(o *redis.Options) {
			o.Addr, o.ReadTimeout = j.proxy.Addr(), 100*time.Millisecond
		}))
		producers.Go(func() {
			for round := 0; over.Err() == nil; round++ {
				tr := traffic{name: fmt.Sprintf("%s%03d", name, round), messages: 100, keys: 16, loose: 30, delayed: 5, lone: 60}
				j.produce(p, tr, out)
			}
		})
	}
	j.cuts(func() bool {
		return time.Since(began) > 3*time.Second && faults[0].Struck() >= 20 && faults[1].Struck() >= 10
	})
	cancel()
	producers.Wait()
	for _, f := range faults {
		f.Release()
	}
	j.drained()
	j.stop(team...)
	looks := watch()
	j.over(len(out.accepted), 0)
	zqt.NoViolations(t, j.rec.CheckAllDone())
	if len(out.accepted) < 200 || looks < 10 {
		t.Errorf("this was no trial: %d messages, %d looks", len(out.accepted), looks)
	}
	t.Logf("%d messages, %d replies and %d calls lost, %+v", len(out.accepted), faults[0].Struck(), faults[1].Struck(), j.counters())
}

// cuts breaks all connections off now and then, for less than a lease, until that is enough.
func (j *journey) cuts(enough func() bool) {
	j.t.Helper()
	ends := time.Now().Add(patience)
	for !enough() && time.Now().Before(ends) {
		<-time.After(time.Duration(j.dice.between(200, 700)) * time.Millisecond)
		j.proxy.Cut()
		<-time.After(time.Duration(j.dice.between(1, 300)) * time.Millisecond)
		j.proxy.Heal()
	}
}
