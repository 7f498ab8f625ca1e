package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// B2: the tail of a batch does not pay for its head. Ten messages of a key are claimed together; the head
// fails three times, and first runs longer than the lease: the nine behind it are as fresh as ever.
func TestFaultB2TailDoesNotPayForTheHead(t *testing.T) {
	t.Parallel()
	const lease = 2 * time.Second // a busy machine stands still for longer than one would think
	x := newTrial(t)
	x.warm()
	for i := range 10 {
		x.send(zq.Message{ID: fmt.Sprintf("m%d", i), Key: "k"})
	}
	ran := make(chan zq.Delivery, 100)
	c := x.start(zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
		if strings.HasPrefix(d.ID, "warm") {
			return nil
		}
		ran <- *d
		if d.ID == "m0" && d.Attempt == 1 {
			pass(ctx, 5*lease/4)
		}
		if d.ID == "m0" && d.Attempt <= 3 {
			return errMixed
		}
		return nil
	}), zq.ConsumerConfig{Concurrency: 2, Lease: lease, RetryDelay: shortRetry})
	for attempt := 1; attempt <= 4; attempt++ {
		if d := zqt.Wait(t, ran, patience); d.ID != "m0" || d.Attempt != attempt || d.Losses != 0 {
			t.Fatalf("run %d is %s, attempt %d, losses %d", attempt, d.ID, d.Attempt, d.Losses)
		}
	}
	for i := 1; i < 10; i++ {
		if d := zqt.Wait(t, ran, patience); d.ID != fmt.Sprintf("m%d", i) || d.Attempt != 1 || d.Losses != 0 {
			t.Errorf("place %d: %s, attempt %d, losses %d", i, d.ID, d.Attempt, d.Losses)
		}
	}
	x.drained()
	x.healthy()
	if n := c.Stats().Lost; n != 0 {
		t.Errorf("%d messages lost their lease", n)
	}
}

// warm sends quick messages, from which a consumer learns that it may claim ahead.
func (x *trial) warm() {
	x.t.Helper()
	for i := range 30 {
		x.send(zq.Message{ID: fmt.Sprint("warm-", i), Score: at(int64(-100 + i))})
	}
}

// pass lets real time go by, on the clock of the handler's own context.
func pass(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}

// B3: what is put back keeps its place, whatever the reason: an error, a rate limit, a shutdown. A, B and C of
// one key, A comes back six times, two consumers at a time: the log is A, B, C.
func TestFaultB3PutBackKeepsItsPlace(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	x.sendAll(zq.Message{ID: "A", Key: "k"}, zq.Message{ID: "B", Key: "k"}, zq.Message{ID: "C", Key: "k"})
	var mu sync.Mutex
	var log []string
	stopMe := make(chan int, 10)
	runs := 0
	handler := func(n int) zq.Handler {
		return zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
			mu.Lock()
			if d.ID == "A" {
				runs++
			}
			run := runs
			mu.Unlock()
			if d.ID == "A" && run <= 6 {
				switch run % 3 {
				case 0:
					stopMe <- n
					<-ctx.Done()
					return ctx.Err()
				case 1:
					return zq.RetryAfter(time.Millisecond, errMixed)
				default:
					return zq.Postpone(time.Millisecond) // the rate limit
				}
			}
			mu.Lock()
			defer mu.Unlock()
			log = append(log, d.ID)
			return nil
		})
	}
	cfg := zq.ConsumerConfig{DrainTime: time.Millisecond}
	team := map[int]*zq.Consumer{0: x.start(handler(0), cfg), 1: x.start(handler(1), cfg)}
	for range 2 {
		n := zqt.Wait(t, stopMe, patience)
		x.stop(team[n])
		team[n+2] = x.start(handler(n+2), cfg)
	}
	x.over(3, 0)
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(log, []string{"A", "B", "C"}) {
		t.Errorf("completed in the order %q", log)
	}
	if c := x.counters(); c.Failed != 2 {
		t.Errorf("%d failures are charged, want the two errors alone", c.Failed)
	}
}

// B7: what runs and what waits do not share a set. A message at work, whose lease ends earlier than its delayed
// sibling is due, and the queue is looked after meanwhile: nobody else gets it, and the sibling moves alone.
func TestFaultB7RunningIsNotWaiting(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	x.send(zq.Message{ID: "running"})
	x.send(zq.Message{ID: "sibling", Delay: 2500 * time.Millisecond})
	ran, done := make(chan string, 10), make(chan struct{})
	h := zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		ran <- d.ID
		if d.ID == "running" {
			<-done
		}
		return nil
	})
	for range 2 {
		x.start(h, zq.ConsumerConfig{Lease: 2 * time.Second, Concurrency: 2})
	}
	for _, want := range []string{"running", "sibling"} {
		if got := zqt.Wait(t, ran, patience); got != want {
			t.Errorf("%s ran, want %s", got, want)
		}
	}
	info, err := x.look.Message(t.Context(), "running")
	if err != nil || info.State != zq.StateRunning {
		t.Errorf("%+v, %v", info, err)
	}
	close(done)
	x.over(2, 0)
	if len(ran) > 0 {
		t.Errorf("%s ran again", <-ran)
	}
}

// B9: one score for all, from two producers at once, with ids that would sort otherwise: the order is that of
// the sequence.
func TestFaultB9SameScore(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	x.must2(x.look.Pause(t.Context()))
	var mu sync.Mutex
	seq := map[string]int64{}
	var producers sync.WaitGroup
	for n := range 2 {
		p := x.producer(x.rdb)
		producers.Go(func() {
			for batch := range 10 {
				msgs := make([]zq.Message, 50)
				for i := range msgs {
					msgs[i] = zq.Message{ID: fmt.Sprintf("job:%d.%d", batch*50+i, n), Score: at(7)}
				}
				results, err := p.EnqueueBatch(t.Context(), msgs)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				for _, r := range results {
					seq[r.ID] = r.Sequence
				}
				mu.Unlock()
			}
		})
	}
	producers.Wait()
	got := make(chan string, 1000)
	x.start(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error { got <- d.ID; return nil }), zq.ConsumerConfig{Concurrency: 1})
	x.must2(x.look.Resume(t.Context()))
	last := int64(0)
	for range 1000 {
		id := zqt.Wait(t, got, patience)
		if seq[id] <= last {
			t.Fatalf("%s with sequence %d ran after %d", id, seq[id], last)
		}
		last = seq[id]
	}
	x.over(1000, 0)
}

func (x *trial) must2(_ bool, err error) {
	x.t.Helper()
	x.must(err)
}

// B10 and B11: numbers at the ends of what a double holds, and a payload that a JSON round trip would change,
// stay as they are through retry, dead letter and replay, with a key and without.
func TestFaultB10B11NumbersAndPayloadsStay(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	body, err := json.Marshal(map[string]any{"id": int64(1) << 60, "list": []any{}, "map": map[string]any{}, "e": 1e21})
	x.must(err)
	scores := []int64{1<<53 - 1, 1<<53 - 2, 7058188800000495, 4102444800000000, 99999999999999, 100000000000001, 1, 0, -1, -7058188800000495, 1 - 1<<53}
	for i, s := range scores {
		x.send(zq.Message{ID: fmt.Sprint(s), Key: []string{"", fmt.Sprint("k", s)}[i%2], Score: at(s), Body: body})
	}
	replayed := make(chan zq.Delivery, 100)
	x.start(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		switch {
		case d.Replays > 0 && d.Attempt > 1:
			replayed <- *d
			return nil
		case d.Attempt < 3:
			return zq.RetryAfter(time.Millisecond, errMixed)
		}
		return zq.Dead("test", errMixed)
	}), zq.ConsumerConfig{})
	x.drained()
	for _, s := range scores {
		l, err := x.look.DeadLetter(t.Context(), fmt.Sprint(s))
		if err != nil || l.Score != float64(s) || string(l.Message.Body) != string(body) {
			t.Errorf("dead letter %d: score %.0f, body %q, %v", s, l.Score, l.Message.Body, err)
		}
		x.must(x.look.Replay(t.Context(), fmt.Sprint(s)))
		if d := zqt.Wait(t, replayed, patience); d.Score != float64(s) || string(d.Body) != string(body) || d.ID != fmt.Sprint(s) {
			t.Errorf("replay of %d: score %.0f, body %q", s, d.Score, d.Body)
		}
	}
	x.over(len(scores), 0)
}

// B12 and B13: batches about the edges of what one step, one chunk or one command takes: as many come out as
// went in, delayed or not, keyed or not.
func TestFaultB12B13ChunkEdges(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, 3, 199, 200, 201, 999, 1000, 1001, 7999, 8000, 10_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			x := newTrial(t)
			batch := make([]zq.Message, n)
			for i := range batch {
				batch[i] = zq.Message{Key: []string{"", "a", "b"}[i%3]}
				if i%2 == 0 {
					batch[i].Delay = time.Millisecond
				}
			}
			x.sendAll(batch...)
			x.send(zq.Message{ID: "future", Delay: time.Hour}) // due entries are taken, others are not
			if d := x.depth(); d.Pending+d.Delayed != int64(n)+1 || d.Dead+d.Running+d.Suspect != 0 {
				t.Errorf("%d went in: %+v", n, d)
			}
			c := x.start(zq.HandlerFunc(func(context.Context, *zq.Delivery) error { return nil }), zq.ConsumerConfig{Concurrency: 50})
			zqt.Eventually(t, patience, func() bool { return x.counters().Acked == int64(n) }, "all are acked")
			x.stop(c)
			if d := x.depth(); d.Delayed != 1 || d.Pending+d.Running != 0 || c.Stats().Started != int64(n) {
				t.Errorf("%d went in, %d ran: %+v", n, c.Stats().Started, d)
			}
			x.healthy()
		})
	}
}
