package integration_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// A worker is killed while a hundred handlers are at work, with more claimed ahead: the next worker runs all
// of it, in order, as soon as the lease is over. How soon is logged; that it is soon is the promise of
// waiting for the first lease deadline, not of this test's bound.
func TestCrashInMidBatch(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	const lease = time.Second
	for i := range 100 {
		x.send(zq.Message{ID: fmt.Sprintf("busy-%03d", i), Key: []string{"", fmt.Sprint("k", i)}[i%2],
			Headers: map[string]string{headDo: doWait}})
	}
	p := x.child(workerSpec{Name: "dies", Concurrency: 100, Lease: lease, MaxAttempts: 3})
	for range 100 {
		p.Expect("waiting", patience)
	}
	for i := range 60 {
		x.send(zq.Message{ID: fmt.Sprintf("behind-%03d", i), Key: fmt.Sprint("k", i)})
	}
	// The next one waits already; it has the other messages' lanes to do meanwhile.
	rest := make(chan struct{})
	var mu sync.Mutex
	rerun := map[string]int{}
	c := x.start(recorded(x.rec.Add, "lives", 3, func(_ context.Context, d *zq.Delivery) (zqt.Op, error) {
		mu.Lock()
		defer mu.Unlock()
		rerun[d.ID] = d.Attempt
		if len(rerun) == 160 {
			close(rest)
		}
		return zqt.Succeeded, nil
	}), zq.ConsumerConfig{Concurrency: 20, Lease: lease, MaxAttempts: 3})
	zqt.Eventually(t, patience, func() bool { return x.counters().Acked == 30 }, "the keys that nobody holds are done")
	x.killed(p, "dies")
	killed := time.Now()
	zqt.Wait(t, rest, patience)
	t.Logf("160 messages were through %v after the kill, the lease is %v", time.Since(killed), lease)
	x.over(160, 0)
	x.stop(c)
	x.inOrder()
	for id, attempt := range rerun {
		if attempt != 1 {
			t.Errorf("%s was charged: attempt %d", id, attempt)
		}
	}
	if n := x.counters(); n.Reaped == 0 || n.Rescued != 100 || n.Refused != 0 {
		t.Errorf("counters %+v", n)
	}
}

// One message, one worker killed in it, one that waits: the time until it runs again, several times over.
func TestCrashInMidHandler(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	const lease = 700 * time.Millisecond
	ran := make(chan *zq.Delivery, 10)
	h := recorded(x.rec.Add, "lives", 3, func(_ context.Context, d *zq.Delivery) (zqt.Op, error) {
		ran <- d
		return zqt.Succeeded, nil
	})
	for round := range 3 {
		name, id := fmt.Sprint("dies.", round), fmt.Sprint("m-", round)
		p := x.child(workerSpec{Name: name, Concurrency: 1, Lease: lease, MaxAttempts: 3})
		x.send(zq.Message{ID: id, Key: "k", Headers: map[string]string{headDo: doWait}})
		p.Expect("waiting "+id, patience)
		x.send(zq.Message{ID: id + ".next", Key: "k"})
		c := x.start(h, zq.ConsumerConfig{Lease: lease, MaxAttempts: 3})
		x.killed(p, name)
		killed := time.Now()
		if d := zqt.Wait(t, ran, patience); d.ID != id || d.Attempt != 1 || d.Losses != 0 {
			t.Errorf("first came %s in attempt %d with %d losses", d.ID, d.Attempt, d.Losses)
		}
		t.Logf("it ran %v after the kill, the lease is %v", time.Since(killed), lease)
		if d := zqt.Wait(t, ran, patience); d.ID != id+".next" {
			t.Errorf("then came %s", d.ID)
		}
		x.drained()
		x.stop(c)
	}
	x.over(6, 0)
	x.inOrder()
}

// Every consumer is gone when the lease ends: the messages are still there for the first that comes.
func TestCrashOfTheLastWorker(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	for i := range 20 {
		x.send(zq.Message{ID: fmt.Sprint("m-", i), Key: fmt.Sprint("k", i%2), Headers: map[string]string{headDo: doWait}})
	}
	p := x.child(workerSpec{Name: "dies", Concurrency: 4, Lease: 300 * time.Millisecond, MaxAttempts: 3})
	p.Expect("waiting", patience)
	p.Expect("waiting", patience)
	x.killed(p, "dies")
	x.healthy()
	c := x.start(recorded(x.rec.Add, "lives", 3, acks), zq.ConsumerConfig{Lease: 10 * time.Second, MaxAttempts: 3})
	x.over(20, 0)
	x.stop(c)
	x.inOrder()
}
