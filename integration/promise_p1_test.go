package integration_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// P1: whenever somebody looks, every accepted message is in exactly one place and the counters balance.
func TestP1ConservationUnderChurn(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	watch := x.watch()
	out := &sent{}
	var producers sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		p := x.producer(x.rdb)
		producers.Go(func() {
			x.produce(p, traffic{name: name, messages: 1200, keys: 40, loose: 25, delayed: 10, twice: 10, lone: 30}, out)
		})
	}
	lots := mix{Fail: 5, After: 5, Postpone: 5, Dead: 2, Panic: 1}
	cfg := zq.ConsumerConfig{Concurrency: 8, Lease: time.Second, MaxAttempts: 4}
	team := x.hire(2, cfg, lots.fate(x.dice))
	sent := func() bool { return int(x.counters().Acked) > 1500 }
	x.mortal(workerSpec{Mix: lots, Concurrency: 8, Lease: time.Second, MaxAttempts: 4}, 3, sent)
	producers.Wait()
	back := x.replaySome()
	x.drained()
	team.dismiss()
	if looks := watch(); looks < 20 {
		t.Errorf("only %d looks", looks)
	}

	c, dead := x.counters(), x.depth().Dead
	x.over(len(out.accepted), int(dead))
	if int(c.Duplicates) < len(out.duplicates) || len(out.duplicates) == 0 || dead == 0 || c.Failed == 0 || back == 0 {
		t.Errorf("this was no trial: %d duplicates seen, %d replayed, %+v", len(out.duplicates), back, c)
	}
	if len(out.accepted) != 2400 {
		t.Errorf("%d accepted, want 2400", len(out.accepted))
	}
}

// watch verifies the queue over and over while the test does its work; the function that it gives ends that
// and says how many looks there were.
func (x *trial) watch() func() int {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	looks := 0
	wg.Go(func() {
		tick := time.NewTicker(15 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			r, err := x.look.Verify(context.Background(), 0)
			if err != nil || len(r.Problems) > 0 {
				x.t.Errorf("verify, look %d: %v\n  %s", looks, err, strings.Join(r.Problems, "\n  "))
				return
			}
			looks++
		}
	})
	end := func() int {
		cancel()
		wg.Wait()
		return looks
	}
	x.t.Cleanup(func() { end() })
	return end
}

// replaySome sends dead letters back to work and removes one, while all goes on. It says how many went back.
func (x *trial) replaySome() int {
	x.t.Helper()
	letters, err := x.look.DeadLetters(x.t.Context(), time.Time{}, 100)
	x.must(err)
	back := 0
	for i, l := range letters {
		if i == 0 {
			x.must(x.look.RemoveDead(x.t.Context(), l.Message.ID))
			if err := x.look.Replay(x.t.Context(), l.Message.ID); !errors.Is(err, zq.ErrNotFound) {
				x.t.Errorf("replay of a removed letter: %v", err)
			}
			continue
		}
		var opts []zq.ReplayOption
		if x.dice.percent(50) {
			opts = append(opts, zq.ReplayAtEnd())
		}
		x.must(x.look.Replay(x.t.Context(), l.Message.ID, opts...))
		back++
	}
	return back
}
