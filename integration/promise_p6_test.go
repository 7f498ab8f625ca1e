package integration_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// P6: what waited in a dead process's buffer is not charged. A worker claims a hundred messages ahead and is
// killed in the first; each of them, loose or keyed, then runs as its first attempt.
func TestP6HonestAttemptsOfTheBuffered(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	changed, err := x.look.Pause(t.Context())
	x.must(err)
	for i := range 60 { // quick ones, so that the worker claims ahead
		x.send(zq.Message{ID: fmt.Sprintf("a-%02d", i)})
	}
	x.send(zq.Message{ID: "b-stuck", Headers: map[string]string{headDo: doWait}})
	for i := range 100 {
		x.send(zq.Message{ID: fmt.Sprintf("c-%03d", i), Key: []string{"", "k1", "k2"}[i%3]})
	}
	p := x.child(workerSpec{Name: "dies", Concurrency: 1, Lease: 400 * time.Millisecond, MaxAttempts: 3})
	resumed, err := x.look.Resume(t.Context())
	x.must(err)
	p.Expect("waiting b-stuck", patience)
	ahead := x.depth().Running
	x.killed(p, "dies")
	if ahead < 4 || !changed || !resumed {
		t.Fatalf("this is no trial: the worker had claimed %d messages", ahead)
	}

	runs := &attempts{of: map[string][]int{}}
	c := x.start(recorded(x.rec.Add, "lives", 3, runs.note), zq.ConsumerConfig{Concurrency: 4, Lease: time.Second, MaxAttempts: 3})
	x.over(161, 0)
	x.stop(c)
	x.inOrder()
	for id, ns := range runs.of {
		if !slices.Equal(ns, []int{1}) {
			t.Errorf("%s ran as attempts %v, want 1 alone", id, ns)
		}
	}
	if len(runs.of) < 101 || x.counters().Failed != 0 {
		t.Errorf("%d messages ran, %d failed", len(runs.of), x.counters().Failed)
	}
}

// attempts notes with which attempt number each message ran.
type attempts struct {
	mu sync.Mutex
	of map[string][]int
}

func (a *attempts) note(_ context.Context, d *zq.Delivery) (zqt.Op, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of[d.ID] = append(a.of[d.ID], d.Attempt)
	return zqt.Succeeded, nil
}

// P6: a message that kills its worker is claimed alone from the second time on and dies as lost after
// MaxLosses, while everything else is worked off uncharged, its own key included.
func TestP6HonestAttemptsOfAKiller(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", "k0"} {
		t.Run("key="+key, func(t *testing.T) {
			t.Parallel()
			x := newTrial(t)
			for i := range 120 {
				m := zq.Message{ID: fmt.Sprintf("m-%03d", i), Key: []string{key, "", "k1", "k2"}[i%4]}
				if i == 40 {
					m.Headers = map[string]string{headDo: doDie}
				}
				x.send(m)
			}
			x.killerDies("m-040")
		})
	}
}

func (x *trial) killerDies(killer string) {
	x.t.Helper()
	const most = 2
	// A lease that a live worker keeps on a loaded machine too: losing one alone is charged like a death.
	spec := workerSpec{Concurrency: 4, Lease: time.Second, MaxLosses: most, MaxAttempts: 10}
	deaths := x.bury(spec, 1)
	x.over(120, 1)
	l, err := x.look.DeadLetter(x.t.Context(), killer)
	x.must(err)
	x.rec.Add(zqt.Event{Op: zqt.Dead, ID: killer, At: l.DiedAt})
	x.inOrder()
	if l.Reason != zq.ReasonLost || l.Losses != most || l.Attempts != 0 {
		x.t.Errorf("it died as %s after %d attempts and %d losses", l.Reason, l.Attempts, l.Losses)
	}
	var tries []int
	for _, e := range x.rec.Events() {
		switch {
		case e.Op == zqt.Started && e.ID == killer:
			tries = append(tries, e.Attempt)
		case e.Op == zqt.Started && e.Attempt != 1:
			x.t.Errorf("%s was charged with what %s did: attempt %d", e.ID, killer, e.Attempt)
		}
	}
	// In company first, which is nobody's fault; then alone, as often as it may.
	if !slices.Equal(tries, []int{1, 1, 2}) || deaths != most+1 {
		x.t.Errorf("%d workers died, in attempts %v", deaths, tries)
	}
	x.must(x.look.RemoveDead(x.t.Context(), killer))
	x.over(120, 0)
}

// bury starts one worker after the other until so many messages are dead and no more is left to do. It tells
// how many workers that cost.
func (x *trial) bury(spec workerSpec, dead int64) (deaths int) {
	x.t.Helper()
	for ; deaths < 20; deaths++ {
		spec.Name = fmt.Sprint("child.", deaths)
		p := x.child(spec)
		gone := false
		eventually(patience, func() bool {
			select {
			case _, more := <-p.Lines():
				gone = !more
			default:
			}
			d := x.depth()
			return gone || d.Dead == dead && d.Pending+d.Running+d.Suspect+d.Delayed == 0
		})
		if !gone {
			x.terminated(p)
			return deaths
		}
		if code := p.Wait(patience); code != 7 {
			x.t.Fatalf("%s ended with code %d", spec.Name, code)
		}
		x.killed(p, spec.Name)
	}
	x.t.Fatal("the killer does not die")
	return deaths
}

// P6: RetryAfter and an error are charged, Postpone and a shutdown are not, and the head's failures are not
// those of the messages behind it.
func TestP6HonestAttemptsOfTheDecided(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	var mu sync.Mutex
	runs := map[string][]int{}
	script := map[string][]error{ // by run, then success
		"head":   {errMixed, zq.RetryAfter(time.Millisecond, errMixed), errMixed},
		"later":  {zq.Postpone(time.Millisecond), zq.Postpone(0), errMixed, zq.Postpone(2 * time.Millisecond)},
		"doomed": {errMixed, zq.Postpone(0), zq.RetryAfter(0, errMixed), errMixed, errMixed, errMixed},
	}
	h := func(_ context.Context, d *zq.Delivery) (zqt.Op, error) {
		mu.Lock()
		defer mu.Unlock()
		n := len(runs[d.ID])
		runs[d.ID] = append(runs[d.ID], d.Attempt)
		if n >= len(script[d.ID]) {
			return zqt.Succeeded, nil
		}
		return zqt.Failed, script[d.ID][n]
	}
	for _, id := range []string{"head", "second", "third"} {
		x.send(zq.Message{ID: id, Key: "k"})
	}
	x.send(zq.Message{ID: "later", Key: "l"})
	x.send(zq.Message{ID: "doomed"})
	team := x.hire(2, zq.ConsumerConfig{Concurrency: 4, MaxAttempts: 4}, h)
	x.drained()
	team.dismiss()
	x.over(5, 1)
	want := map[string][]int{
		"head": {1, 2, 3, 4}, "second": {1}, "third": {1}, "later": {1, 1, 1, 2, 2}, "doomed": {1, 2, 2, 3, 4},
	}
	for id, ns := range want {
		if !slices.Equal(runs[id], ns) {
			t.Errorf("%s ran as attempts %v, want %v", id, runs[id], ns)
		}
	}
	l, err := x.look.DeadLetter(t.Context(), "doomed")
	x.must(err)
	if l.Reason != zq.ReasonAttempts || l.Attempts != 4 || l.Error != errMixed.Error() {
		t.Errorf("dead letter: %+v", l)
	}
	if c := x.counters(); c.Failed != 3+1+4 {
		t.Errorf("%d failures counted, want 8", c.Failed)
	}
	x.afresh("doomed", &mu, runs)
}

// afresh replays a dead letter: its attempts start anew.
func (x *trial) afresh(id string, mu *sync.Mutex, runs map[string][]int) {
	x.t.Helper()
	x.must(x.look.Replay(x.t.Context(), id))
	seen := make(chan *zq.Delivery, 1)
	c := x.start(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		seen <- d
		return nil
	}), zq.ConsumerConfig{})
	d := zqt.Wait(x.t, seen, patience)
	x.stop(c)
	mu.Lock()
	defer mu.Unlock()
	if d.ID != id || d.Attempt != 1 || d.Replays != 1 || !strings.Contains(d.LastError, errMixed.Error()) || len(runs[id]) != 5 {
		x.t.Errorf("after the replay: %+v", d)
	}
}
