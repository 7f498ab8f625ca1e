package zq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// bench is a queue of the test's own with all that looks at it.
type bench struct {
	t     *testing.T
	rdb   *redis.Client
	queue string
	p     *zq.Producer
	in    *zq.Inspector
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return benchOn(t, zqtest.Shared(t).Client())
}

// benchOn is a bench on a Redis of the test's own.
func benchOn(t *testing.T, rdb *redis.Client) *bench {
	t.Helper()
	b := &bench{t: t, rdb: rdb, queue: zqtest.Queue(t)}
	var err error
	if b.p, err = zq.NewProducer(b.rdb, b.queue); err != nil {
		t.Fatal(err)
	}
	if b.in, err = zq.NewInspector(b.rdb, b.queue); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) enqueue(msgs ...zq.Message) {
	b.t.Helper()
	results, err := b.p.EnqueueBatch(b.t.Context(), msgs)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil || r.Duplicate {
			b.t.Fatalf("%s: duplicate %t, %v", r.ID, r.Duplicate, r.Err)
		}
	}
}

// work starts a consumer that stops with the test.
func (b *bench) work(cfg zq.ConsumerConfig, h zq.HandlerFunc) *zq.Consumer {
	b.t.Helper()
	c, err := zq.NewConsumer(b.rdb, b.queue, h, cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := c.Start(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			b.t.Error(err)
		}
	})
	return c
}

func (b *bench) state(id string) zq.State {
	b.t.Helper()
	info, err := b.in.Message(b.t.Context(), id)
	if errors.Is(err, zq.ErrNotFound) {
		return zq.StateUnknown
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return info.State
}

func (b *bench) await(id string, want zq.State) {
	b.t.Helper()
	zqtest.Eventually(b.t, limit, func() bool { return b.state(id) == want }, id+" to be "+string(want))
}

func (b *bench) depth() zq.Depth {
	b.t.Helper()
	d, err := b.in.Depth(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	d.OldestReady = 0 // a time, looked at where it matters
	return d
}

func (b *bench) verify() {
	b.t.Helper()
	r, err := b.in.Verify(b.t.Context(), 0)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, p := range r.Problems {
		b.t.Error(p)
	}
}

// Every state of a message at once, as the inspector sees it.
func TestInspectorStates(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	hold, held := make(chan struct{}), make(chan string, 1)
	b.work(zq.ConsumerConfig{Concurrency: 4}, func(_ context.Context, d *zq.Delivery) error {
		switch d.ID {
		case "fails":
			return zq.RetryAfter(time.Hour, errors.New("not today"))
		case "dies":
			return zq.Dead("broken", errors.New("never"))
		case "runs":
			held <- d.ID
			<-hold
		}
		return nil
	})
	t.Cleanup(func() { close(hold) })
	b.enqueue(zq.Message{ID: "fails", Key: "sleepy"}, zq.Message{ID: "behind", Key: "sleepy"},
		zq.Message{ID: "dies", Kind: "k", Body: []byte("bytes"), Headers: map[string]string{"h": "v"}, Score: new(int64(-7))},
		zq.Message{ID: "done"}, zq.Message{ID: "later", Delay: time.Hour, Score: new(int64(5))}, zq.Message{ID: "runs"})
	zqtest.Wait(t, held, limit)
	b.await("fails", zq.StateRetry)
	b.await("dies", zq.StateDead)
	b.await("done", zq.StateDone)
	for id, want := range map[string]zq.State{
		"behind": zq.StatePending, "later": zq.StateDelayed, "runs": zq.StateRunning, "nobody": zq.StateUnknown,
	} {
		if got := b.state(id); got != want {
			t.Errorf("%s is %q, want %q", id, got, want)
		}
	}
	want := zq.Depth{Pending: 2, Delayed: 1, Running: 1, Dead: 1, KeysWaiting: 1, Claims: 1, DedupeRecords: 1}
	if diff := cmp.Diff(want, b.depth()); diff != "" {
		t.Error(diff)
	}
	b.checkInfos()
	b.verify()
}

func (b *bench) checkInfos() {
	b.t.Helper()
	fails, err := b.in.Message(b.t.Context(), "fails")
	if err != nil || fails.Attempts != 1 || fails.LastError != "not today" || fails.Blocked != "delayed" {
		b.t.Errorf("fails: %+v, %v", fails, err)
	}
	later, err := b.in.Message(b.t.Context(), "later")
	if err != nil || later.Score != 5 || time.Until(later.Due) < 50*time.Minute {
		b.t.Errorf("later: %+v, %v", later, err)
	}
	dead, err := b.in.DeadLetter(b.t.Context(), "dies")
	if err != nil {
		b.t.Fatal(err)
	}
	want := zq.DeadLetter{
		Message: zq.Message{ID: "dies", Kind: "k", Body: []byte("bytes"), Headers: map[string]string{"h": "v"}},
		Reason:  "broken", Error: "never", Attempts: 1, Score: -7,
		Sequence: dead.Sequence, EnqueuedAt: dead.EnqueuedAt, DiedAt: dead.DiedAt,
	}
	if diff := cmp.Diff(want, dead); diff != "" {
		b.t.Error(diff)
	}
	if dead.Sequence == 0 || dead.EnqueuedAt.IsZero() || dead.DiedAt.Before(dead.EnqueuedAt) {
		b.t.Errorf("times of %+v", dead)
	}
	if _, err := b.in.DeadLetter(b.t.Context(), "later"); !errors.Is(err, zq.ErrLive) {
		b.t.Errorf("a live message as a dead letter: %v", err)
	}
}

// Keys shows what each key waits for.
func TestInspectorKeys(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	hold, held := make(chan struct{}), make(chan string, 1)
	b.work(zq.ConsumerConfig{Concurrency: 2, OnDeath: zq.HaltKey}, func(_ context.Context, d *zq.Delivery) error {
		switch d.Key {
		case "asleep":
			return zq.RetryAfter(time.Hour, errors.New("later"))
		case "halted":
			return zq.Dead("broken", nil)
		case "held":
			held <- d.ID
			<-hold
		}
		return nil
	})
	b.enqueue(zq.Message{ID: "a", Key: "asleep"}, zq.Message{ID: "b", Key: "asleep"},
		zq.Message{ID: "h", Key: "halted"}, zq.Message{ID: "i", Key: "halted"}, zq.Message{ID: "c", Key: "held"})
	zqtest.Wait(t, held, limit)
	b.await("a", zq.StateRetry)
	b.await("h", zq.StateDead)
	if _, err := b.in.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.enqueue(zq.Message{ID: "f", Key: "free"})
	var got []string
	for k, err := range b.in.Keys(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		who := k.Held
		if len(who) == 32 {
			who = "a claim"
		}
		got = append(got, fmt.Sprintf("%s: %s waiting %d head %q due %t", k.Key, who, k.Waiting, k.Head, !k.Due.IsZero()))
	}
	slices.Sort(got)
	want := []string{
		`asleep: delayed waiting 2 head "a" due true`, `free:  waiting 1 head "f" due false`,
		`halted: halted waiting 1 head "i" due false`, `held: a claim waiting 0 head "" due false`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if changed, err := b.in.ResumeKey(t.Context(), "halted"); !changed || err != nil {
		t.Errorf("resume a halted key: %t, %v", changed, err)
	}
	if changed, err := b.in.ResumeKey(t.Context(), "free"); changed || err != nil {
		t.Errorf("resume a free key: %t, %v", changed, err)
	}
	close(hold)
	b.verify()
}

// A paused queue gives nothing out; a resumed one wakes its idle consumers.
func TestInspectorPause(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ran := make(chan string, 10)
	c := b.work(zq.ConsumerConfig{}, func(_ context.Context, d *zq.Delivery) error {
		ran <- d.ID
		return nil
	})
	if changed, err := b.in.Pause(t.Context()); !changed || err != nil {
		t.Fatal(changed, err)
	}
	if changed, err := b.in.Pause(t.Context()); changed || err != nil {
		t.Fatal("paused twice", changed, err)
	}
	b.enqueue(zq.Message{ID: "a"})
	zqtest.Eventually(t, limit, func() bool {
		state, _ := c.Health()
		return state == "paused"
	}, "the consumer to see the pause")
	if !b.depth().Paused || len(ran) > 0 || b.state("a") != zq.StatePending {
		t.Errorf("while paused: %+v, %d ran", b.depth(), len(ran))
	}
	if changed, err := b.in.Resume(t.Context()); !changed || err != nil {
		t.Fatal(changed, err)
	}
	if id := zqtest.Wait(t, ran, limit); id != "a" {
		t.Errorf("ran %s", id)
	}
}

// Dead letters are listed from a time on, replayed once, and removed for good.
func TestInspectorDeadLetters(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	mended := make(chan struct{})
	ran := make(chan string, 10)
	b.work(zq.ConsumerConfig{Concurrency: 1, MaxAttempts: 1}, func(_ context.Context, d *zq.Delivery) error {
		select {
		case <-mended:
			ran <- fmt.Sprintf("%s/%d/%d/%s", d.ID, d.Attempt, d.Replays, d.LastError)
			return nil
		default:
			return errors.New("broken")
		}
	})
	b.enqueue(zq.Message{ID: "a"}, zq.Message{ID: "b"}, zq.Message{ID: "c"})
	for _, id := range []string{"a", "b", "c"} {
		b.await(id, zq.StateDead)
	}
	first, err := b.in.DeadLetters(t.Context(), time.Time{}, 2)
	if err != nil || len(first) != 2 || first[0].Reason != zq.ReasonAttempts {
		t.Fatalf("%+v, %v", first, err)
	}
	if none, err := b.in.DeadLetters(t.Context(), time.Now().Add(time.Hour), 1); err != nil || len(none) != 0 {
		t.Fatalf("from the future: %+v, %v", none, err)
	}
	if _, err := b.in.DeadLetters(t.Context(), time.Time{}, zq.MaxPage+1); !errors.Is(err, zq.ErrInvalid) {
		t.Errorf("too large a page: %v", err)
	}
	close(mended)
	if err := b.in.Replay(t.Context(), "a", zq.ReplayAtEnd()); err != nil {
		t.Fatal(err)
	}
	if got := zqtest.Wait(t, ran, limit); got != "a/1/1/attempts: broken" {
		t.Errorf("replayed: %s", got)
	}
	b.await("a", zq.StateDone)
	if err := b.in.Replay(t.Context(), "a"); !errors.Is(err, zq.ErrNotFound) {
		t.Errorf("replay of one that is done: %v", err)
	}
	if err := b.in.RemoveDead(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if err := b.in.RemoveDead(t.Context(), "b"); !errors.Is(err, zq.ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}
	b.enqueue(zq.Message{ID: "b"}) // its id is free again
	n, err := b.in.Counters(t.Context())
	if err != nil || n.Dead != 3 || n.Replayed != 1 || n.Purged != 1 || n.Enqueued != 4 {
		t.Errorf("%+v, %v", n, err)
	}
	b.verify()
}

// A walk meets every dead letter once, also when more died in one microsecond than a page holds, and while they
// go away under it.
func TestInspectorEachDeadLetter(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	msgs := make([]zq.Message, 450)
	for i := range msgs {
		msgs[i].ID = fmt.Sprintf("m%03d", i)
	}
	b.enqueue(msgs...)
	b.work(zq.ConsumerConfig{Concurrency: 100}, func(context.Context, *zq.Delivery) error { return zq.Dead("all", nil) })
	zqtest.Eventually(t, limit, func() bool { return b.depth().Dead == int64(len(msgs)) }, "all to die")
	seen := map[string]int{}
	for l, err := range b.in.EachDeadLetter(t.Context(), time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen[l.Message.ID]++; len(seen)%3 == 0 {
			if err := b.in.RemoveDead(t.Context(), l.Message.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, m := range msgs {
		if seen[m.ID] != 1 {
			t.Errorf("%s came %d times", m.ID, seen[m.ID])
		}
	}
	b.verify()
}

// What is left to do counts each message once, also where an entry stands for those of its key.
func TestDepthUnfinished(t *testing.T) {
	t.Parallel()
	for want, d := range map[int64]zq.Depth{
		0: {Dead: 7}, 10: {Pending: 4, Ready: 3, Delayed: 2, Running: 3, Suspect: 1},
		2: {Pending: 2, Suspect: 1, KeysSuspect: 1}, 5: {Ready: 5},
	} {
		if got := d.Unfinished(); got != want {
			t.Errorf("%+v: %d unfinished, want %d", d, got, want)
		}
	}
}
