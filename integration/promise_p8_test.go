package integration_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// P8: an id that is known adds nothing, and the receipt says where the message is: in each of the six states.
func TestP8DedupeInEachState(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	gate := make(chan struct{})
	h := zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
		switch d.ID {
		case "running":
			select {
			case <-gate:
			case <-ctx.Done():
			}
		case "retry":
			return zq.RetryAfter(time.Hour, errMixed)
		case "dead":
			return zq.Dead("told", nil)
		}
		return nil
	})
	for _, id := range []string{"running", "retry", "dead", "done"} {
		x.send(zq.Message{ID: id, Key: id, Body: []byte("first")})
	}
	x.send(zq.Message{ID: "delayed", Delay: time.Hour, Body: []byte("first")})
	c := x.start(h, zq.ConsumerConfig{})
	zqt.Eventually(t, patience, func() bool { n := x.counters(); return n.Acked == 1 && n.Failed == 2 && n.Dead == 1 },
		"each is where it belongs")
	_, err := x.look.Pause(t.Context())
	x.must(err)
	x.send(zq.Message{ID: "pending", Key: "running", Body: []byte("first")})

	states := []zq.State{
		zq.StatePending, zq.StateDelayed, zq.StateRunning, zq.StateRetry, zq.StateDead, zq.StateDone,
	}
	for i, s := range states {
		m := zq.Message{ID: string(s), Key: "other", Body: []byte("second"), Delay: time.Duration(i%2) * time.Minute}
		r, err := x.prod.Enqueue(t.Context(), m)
		if err != nil || !r.Duplicate || r.State != s || r.Sequence != 0 || r.ID != m.ID {
			t.Errorf("enqueue of an id that is %s: %+v, %v", s, r, err)
		}
		info, err := x.look.Message(t.Context(), string(s))
		if err != nil || info.State != s || s != zq.StateDone && string(info.Message.Body) != "first" {
			t.Errorf("%s is now %+v, %v", s, info, err)
		}
	}
	if n := x.counters(); n.Duplicates != 6 || n.Enqueued != 6 {
		t.Errorf("counters %+v", n)
	}
	x.inBatch()
	close(gate)
	x.stop(c)
	x.healthy()
}

// inBatch looks for duplicates within one call, and beside new ones.
func (x *trial) inBatch() {
	x.t.Helper()
	batch := []zq.Message{{ID: "new"}, {ID: "dead"}, {ID: "new", Key: "k"}, {ID: "late", Delay: time.Hour}, {ID: "late"}}
	results, err := x.prod.EnqueueBatch(x.t.Context(), batch)
	x.must(err)
	want := []zq.Receipt{
		{ID: "new"}, {ID: "dead", Duplicate: true, State: zq.StateDead}, {ID: "new", Duplicate: true, State: zq.StatePending},
		{ID: "late"}, {ID: "late", Duplicate: true, State: zq.StateDelayed},
	}
	for i, r := range results {
		if accepted := r.Sequence > 0; accepted == r.Duplicate || r.Err != nil {
			x.t.Errorf("result %d: %+v", i, r)
		}
		if r.Sequence = 0; r.Receipt != want[i] {
			x.t.Errorf("result %d: %+v, want %+v", i, r.Receipt, want[i])
		}
	}
}

// P8: of 32 producers that send one id at once, one adds it, for two hundred ids in a row, while consumers
// take them away as fast as they can.
func TestP8DedupeAmongProducers(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	const producers, ids = 32, 200
	var crowd [producers]*zq.Producer
	for i := range crowd {
		crowd[i] = x.producer(x.rdb)
	}
	team := x.hire(2, zq.ConsumerConfig{Concurrency: 4, MaxAttempts: 10}, acks)
	for n := range ids {
		var wg sync.WaitGroup
		var mu sync.Mutex
		accepted := 0
		for i, p := range crowd {
			wg.Go(func() {
				r, err := p.Enqueue(context.Background(), zq.Message{ID: fmt.Sprint("id-", n), Key: fmt.Sprint("k", i%3)})
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				} else if !r.Duplicate {
					accepted++
				}
			})
		}
		wg.Wait()
		if accepted != 1 {
			t.Fatalf("id %d was accepted %d times", n, accepted)
		}
	}
	x.drained()
	team.dismiss()
	x.over(ids, 0)
	zqt.NoViolations(t, x.rec.CheckOnce())
	if n := x.counters().Duplicates; n != ids*(producers-1) {
		t.Errorf("%d duplicates, want %d", n, ids*(producers-1))
	}
}

// P8: the window begins with the ack and ends when the queue says so, to the microsecond of its clock: before
// that an id is a duplicate, after it the same id is a new message. An id made up by the producer leaves no
// record, and neither does a window of nothing.
func TestP8DedupeWindow(t *testing.T) {
	t.Parallel()
	x := newTrial(t, zq.WithDedupeWindow(400*time.Millisecond))
	c := x.start(recorded(x.rec.Add, "w", 10, acks), zq.ConsumerConfig{})
	for round := range 3 {
		x.send(zq.Message{ID: "same"})
		x.drained()
		info, err := x.look.Message(t.Context(), "same")
		x.must(err)
		until := info.Remembered.UnixMicro()
		duplicates, after := 0, zq.Receipt{}
		zqt.Eventually(t, patience, func() bool {
			after, err = x.prod.Enqueue(t.Context(), zq.Message{ID: "same"})
			x.must(err)
			if after.Duplicate {
				duplicates++
			}
			return !after.Duplicate
		}, "the window is over")
		if duplicates < 3 || after.Sequence <= until-1 || after.Sequence > until+5_000_000 {
			t.Errorf("round %d: %d duplicates, then accepted at %d with the window until %d", round, duplicates, after.Sequence, until)
		}
		x.drained()
		// The message that broke the silence has a window of its own; it ends before the next round.
		zqt.Eventually(t, patience, func() bool {
			_, err := x.look.Message(t.Context(), "same")
			return errors.Is(err, zq.ErrNotFound)
		}, "the id is forgotten")
	}
	x.unremembered()
	x.stop(c)
	x.healthy()
}

// unremembered sends what leaves no dedupe record.
func (x *trial) unremembered() {
	x.t.Helper()
	none := x.producer(x.rdb, zq.WithDedupeWindow(0))
	before := x.counters()
	for range 3 {
		_, err := none.Enqueue(x.t.Context(), zq.Message{ID: "fleeting"})
		x.must(err)
		nameless := x.send(zq.Message{})
		x.drained()
		for _, id := range []string{"fleeting", nameless.ID} {
			if info, err := x.look.Message(x.t.Context(), id); !errors.Is(err, zq.ErrNotFound) {
				x.t.Errorf("%s is still known: %+v, %v", id, info, err)
			}
		}
	}
	if n := x.counters(); n.Enqueued-before.Enqueued != 6 || n.Duplicates != before.Duplicates {
		x.t.Errorf("counters %+v", n)
	}
}
