package integration_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/effect"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// P3: what was acked once never runs again, whatever comes and goes afterwards. That an ack is recorded is
// known from the queue itself, message by message, while all goes on.
func TestP3AckIsFinal(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	out := &sent{}
	var producers sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		p := x.producer(x.rdb)
		producers.Go(func() {
			x.produce(p, traffic{name: name, messages: 1000, keys: 30, loose: 30, twice: 20, lone: 20}, out)
		})
	}
	lots := mix{Fail: 10, Postpone: 5, Panic: 1}
	draw := lots.fate(x.dice)
	watch := x.watchAcks()
	counted := func(ctx context.Context, d *zq.Delivery) (zqt.Op, error) {
		if err := d.Effect(effect.HIncrBy("acks", d.ID, 1)); err != nil {
			return zqt.Failed, err
		}
		op, err := draw(ctx, d)
		if op == zqt.Succeeded {
			watch.ids <- d.ID
		}
		return op, err
	}
	cfg := zq.ConsumerConfig{Concurrency: 6, Lease: time.Second, MaxAttempts: 1000}
	team := x.hire(2, cfg, counted)
	acked := func() bool { return x.counters().Acked > 1500 }
	x.mortal(workerSpec{Mix: lots, Concurrency: 6, Lease: time.Second, MaxAttempts: 1000, Count: true}, 2, acked)
	x.must(x.rdb.ScriptFlush(t.Context()).Err())
	producers.Wait()
	x.drained()
	x.knock("a-00007", out)
	x.must(x.prod.Close(t.Context()))
	team.dismiss()
	if n := watch.end(); n < 500 {
		t.Errorf("only %d acks were seen", n)
	}

	x.over(2000, 0)
	zqt.NoViolations(t, x.rec.CheckAckFinal(), x.rec.CheckAllDone())
	counts, err := x.rdb.HGetAll(t.Context(), zq.EffectKey(x.queue, "acks")).Result()
	x.must(err)
	for id, n := range counts {
		if n != "1" {
			t.Errorf("%s was acked %s times", id, n)
		}
	}
	if len(counts) != 2000 {
		t.Errorf("%d messages were acked, want 2000", len(counts))
	}
}

// knock tries by every door to run an acked message again.
func (x *trial) knock(id string, out *sent) {
	x.t.Helper()
	if err := x.look.Replay(x.t.Context(), id); !errors.Is(err, zq.ErrNotFound) {
		x.t.Errorf("replay of an acked message: %v", err)
	}
	r, err := x.prod.Enqueue(x.t.Context(), zq.Message{ID: id, Key: "another"})
	if err != nil || !r.Duplicate || r.State != zq.StateDone {
		x.t.Errorf("enqueue of an acked id: %+v, %v", r, err)
	}
	if len(out.duplicates) == 0 {
		x.t.Error("this was no trial: nothing was sent twice")
	}
}

// ackWatch asks for messages whether their ack is recorded, and notes that in the history.
type ackWatch struct {
	ids chan string
	wg  sync.WaitGroup
	n   int
}

func (x *trial) watchAcks() *ackWatch {
	w := &ackWatch{ids: make(chan string, 100_000)}
	w.wg.Go(func() { // ends with ids
		for id := range w.ids {
			if info, err := x.look.Message(context.Background(), id); err == nil && info.State == zq.StateDone {
				x.rec.Add(zqt.Event{Op: zqt.Acked, ID: id})
				w.n++
			}
		}
	})
	return w
}

func (w *ackWatch) end() int {
	close(w.ids)
	w.wg.Wait()
	return w.n
}
