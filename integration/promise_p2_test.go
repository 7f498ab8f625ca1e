package integration_test

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// P2: whatever crashes, workers by SIGKILL and Redis itself, each accepted message is run until it is acked or
// dead.
func TestP2AtLeastOnceWhateverCrashes(t *testing.T) {
	t.Parallel()
	x := newTrialOn(t, zqt.Redis(t, zqt.WithAppendOnly()))
	out := &sent{}
	var producers sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		p := x.producer(x.srv.Client(func(o *redis.Options) { o.MaxRetries, o.ReadTimeout = -1, 200*time.Millisecond }))
		producers.Go(func() {
			x.produce(p, traffic{name: name, messages: 1000, keys: 30, loose: 30, delayed: 5, lone: 20}, out)
		})
	}
	lots := mix{Fail: 8, Postpone: 3, Dead: 2, Panic: 1}
	cfg := zq.ConsumerConfig{Concurrency: 6, Lease: time.Second, MaxAttempts: 5}
	team := x.hire(2, cfg, lots.fate(x.dice))
	for round := range 3 {
		name := fmt.Sprintf("child.%d", round)
		p := x.child(workerSpec{
			Name: name, Mix: lots, Concurrency: 10, ClaimAhead: 200, Lease: time.Second, MaxAttempts: 5,
			Slow: time.Duration(x.dice.between(1, 4)) * time.Millisecond,
		})
		awaitLine(p, "run ", 500*time.Millisecond)
		if round < 2 {
			x.srv.Kill()
			x.killed(p, name)
			x.srv.Restart()
		} else {
			x.killed(p, name)
		}
	}
	producers.Wait()
	x.drained()
	team.dismiss()

	x.over(2000, int(x.depth().Dead))
	if len(sorted(out.accepted)) == 0 || x.counters().Reaped == 0 {
		t.Errorf("this was no trial: %d accepted, %+v", len(out.accepted), x.counters())
	}
	var ids []string
	for _, name := range []string{"a", "b"} {
		for i := range 1000 {
			ids = append(ids, fmt.Sprintf("%s-%05d", name, i))
		}
	}
	zqt.NoViolations(t, x.rec.CheckAllDone(ids...))
	x.ended(ids)
}

// ended asks the queue itself what became of messages: each is done, or a dead letter.
func (x *trial) ended(ids []string) {
	x.t.Helper()
	for _, id := range ids {
		info, err := x.look.Message(x.t.Context(), id)
		if err != nil || info.State != zq.StateDone && info.State != zq.StateDead {
			x.t.Errorf("%s is %q: %v", id, info.State, err)
		}
	}
}

// A message that is claimed by a worker that dies at once, again and again, is still run by the next one that
// lives: crashes of workers that had not come to it are not its fault.
func TestP2AtLeastOnceForTheUnlucky(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	for i := range 5 {
		x.send(zq.Message{ID: fmt.Sprint("loose-", i), Headers: map[string]string{headDo: doWait}})
		x.send(zq.Message{ID: fmt.Sprint("keyed-", i), Key: "k", Headers: map[string]string{headDo: doWait}})
	}
	for life := range 3 {
		name := fmt.Sprint("child.", life)
		p := x.child(workerSpec{Name: name, Concurrency: 4, Lease: 300 * time.Millisecond, MaxLosses: 100, MaxAttempts: 200})
		p.Expect("waiting", patience)
		x.killed(p, name)
	}
	c := x.start(recorded(x.rec.Add, "last", 200, acks), zq.ConsumerConfig{Lease: time.Second, MaxLosses: 100, MaxAttempts: 200})
	x.over(10, 0)
	x.stop(c)
	zqt.NoViolations(t, x.rec.CheckAllDone(), x.rec.CheckOrder(), x.rec.CheckOneHolder())
	if n := cmp.Compare(x.counters().Reaped, 2); n <= 0 {
		t.Errorf("%d claims reaped, want one of each worker at least", x.counters().Reaped)
	}
	x.must(context.Cause(t.Context()))
}
