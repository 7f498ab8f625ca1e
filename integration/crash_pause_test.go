package integration_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// standstill is a worker that stands still past its lease, in the middle of a message whose key has more,
// and another that has taken over and is at the same message.
type standstill struct {
	*trial
	worker *zqt.Process // paused; its heartbeats are held up once it goes on
	fault  *zqt.Fault   // what holds them up
	other  *zq.Consumer
	runs   chan *zq.Delivery // of the other worker
	goOn   chan struct{}     // lets the other worker's runs end
	open   func()            // closes it
	fence  int64             // of the paused worker's claim
}

const pausedLease = 1200 * time.Millisecond

// newStandstill brings that about. then is what the paused handler does when it goes on, rest how many
// messages its claim holds behind it.
func newStandstill(t *testing.T, then string, rest int) *standstill {
	t.Helper()
	s := &standstill{trial: newTrial(t), runs: make(chan *zq.Delivery, 20), goOn: make(chan struct{})}
	s.open = sync.OnceFunc(func() { close(s.goOn) })
	proxy := zqt.Proxy(t, s.srv.Addr())
	changed, err := s.look.Pause(t.Context())
	s.must(err)
	for i := range 60 { // quick ones, so that the worker claims ahead
		s.send(zq.Message{ID: fmt.Sprintf("quick-%02d", i)})
	}
	s.send(zq.Message{ID: "m-0", Key: "k", Headers: map[string]string{headDo: doWait, headThen: then}})
	for i := range rest {
		s.send(zq.Message{ID: fmt.Sprint("m-", i+1), Key: "k"})
	}
	s.worker = s.child(workerSpec{
		Addr: proxy.Addr(), Name: "paused", Concurrency: 1, Lease: pausedLease, MaxAttempts: 3, MaxLosses: 5, Tell: true,
	})
	resumed, err := s.look.Resume(t.Context())
	s.must(err)
	line := s.worker.Expect("at m-0", patience)
	if _, err := fmt.Sscanf(line, "at m-0 attempt 1 fence %d", &s.fence); err != nil || !changed || !resumed {
		t.Fatalf("%q: %v", line, err)
	}
	s.worker.Expect("waiting m-0", patience)
	zqt.Eventually(t, patience, func() bool { return s.counters().Acked == 60 }, "the quick ones are recorded")
	if n := s.depth().Running; n <= int64(min(rest, 1)) {
		t.Fatalf("this is no trial: the worker holds %d messages", n)
	}
	s.worker.Pause()
	s.fault = proxy.Delay(s.script("heartbeat"), patience)
	s.takeOver(then)
	return s
}

// takeOver waits until the other worker is at the paused one's message.
func (s *standstill) takeOver(then string) {
	s.t.Helper()
	h := recorded(s.rec.Add, "other", 3, func(ctx context.Context, d *zq.Delivery) (zqt.Op, error) {
		taken, err := storeRegister(ctx, s.rdb, s.queue, d.Key, d.Fence(), "other "+d.ID)
		if err != nil || taken != 1 {
			s.t.Errorf("register of the new holder: %d, %v", taken, err)
		}
		s.runs <- d
		<-s.goOn
		return zqt.Succeeded, nil
	})
	s.other = s.start(h, zq.ConsumerConfig{Concurrency: 1, Lease: pausedLease, MaxAttempts: 3, MaxLosses: 5})
	s.t.Cleanup(s.open) // ahead of the consumer's own
	d := zqt.Wait(s.t, s.runs, patience)
	if d.ID != "m-0" || d.Fence() <= s.fence || d.Attempt != 1 {
		s.t.Fatalf("%s: taken over: %s in attempt %d, fence %d after %d", then, d.ID, d.Attempt, d.Fence(), s.fence)
	}
	s.rec.Add(zqt.Event{Op: zqt.Lost, Worker: "paused", ID: "m-0"})
}

// goesOn wakes the paused worker, whose handler finds its permit at once.
func (s *standstill) goesOn() {
	s.t.Helper()
	s.must(permit(s.t.Context(), s.rdb, s.queue, "m-0"))
	s.worker.Resume()
}

// finish lets the other worker go on, and checks that the paused one has changed nothing.
func (s *standstill) finish(acked int) {
	s.t.Helper()
	s.fault.Release()
	s.open()
	s.drained()
	s.terminated(s.worker)
	s.stop(s.other)
	s.over(acked, 0)
	if n := s.counters(); n.Failed+n.Dead != 0 || n.Acked != int64(acked) {
		s.t.Errorf("counters %+v", n)
	}
	s.rec.Add(zqt.Event{Op: zqt.Lost, Worker: "paused"})
	zqt.NoViolations(s.t, s.rec.CheckAllDone(), s.rec.CheckAckFinal())
}

// P5: a holder whose lease ran out while it stood still can not ack, with or without effects, retry or bury:
// the server refuses and counts it. The new holder, in the middle of the same message, notices nothing.
func TestCrashPausedPastItsLeaseSettles(t *testing.T) {
	t.Parallel()
	for _, then := range []string{"ack", "effect", "retry", "dead"} {
		t.Run(then, func(t *testing.T) {
			t.Parallel()
			s := newStandstill(t, then, 0)
			before := s.counters().Refused
			s.goesOn()
			zqt.Eventually(t, patience, func() bool { return s.counters().Refused > before }, "the server has refused the outcome")
			s.healthy()
			if d := s.depth(); d.Running != 1 || d.Dead+d.Delayed+d.Pending != 0 {
				t.Errorf("after the refusal: %+v", d)
			}
			s.finish(61)
			if n, err := s.rdb.HLen(t.Context(), zq.EffectKey(s.queue, "acks")).Result(); err != nil || n != 0 {
				t.Errorf("%d effects of a refused ack: %v", n, err)
			}
		})
	}
}

// P4: nor does it start the next message of a key that somebody else may be at, although it has it in hand
// and has not yet heard from the server.
func TestCrashPausedPastItsLeaseGoesNoFurther(t *testing.T) {
	t.Parallel()
	s := newStandstill(t, "ack", 9)
	s.goesOn()
	// It has worked through what it had when it claims anew, which it does for this one.
	s.send(zq.Message{ID: "new"})
	s.worker.Expect("at new", patience)
	for _, line := range s.worker.Output() {
		if strings.HasPrefix(line, "at m-") && !strings.HasPrefix(line, "at m-0 ") {
			t.Errorf("it went on with its dead claim: %s", line)
		}
	}
	s.finish(71)
}

// P5: nor can it report progress; its handler learns from its context that the lease is lost, and a store
// that looks at the fence refuses what it still writes.
func TestCrashPausedPastItsLeaseReports(t *testing.T) {
	t.Parallel()
	s := newStandstill(t, "checkpoint", 3)
	before := s.counters().Refused
	s.goesOn()
	s.worker.Expect("checkpoint m-0 lost=true", patience)
	if n := s.counters().Refused; n != before+1 {
		t.Errorf("%d refusals were counted, want 1", n-before)
	}
	if n, err := s.rdb.Exists(t.Context(), zq.EffectKey(s.queue, "mark:m-0")).Result(); err != nil || n != 0 {
		t.Errorf("the refused checkpoint has left %d keys: %v", n, err)
	}
	s.worker.Expect("cause m-0 lost=true", patience)
	taken, err := storeRegister(t.Context(), s.rdb, s.queue, "k", s.fence, "stale")
	if err != nil || taken != 0 {
		t.Errorf("a stale write was taken: %d, %v", taken, err)
	}
	value, err := s.rdb.HGet(t.Context(), zq.EffectKey(s.queue, "register:k"), "value").Result()
	if err != nil || value != "other m-0" {
		t.Errorf("the register holds %q: %v", value, err)
	}
	s.finish(64)
}

// P5: nor can it extend its lease. The server refuses, and that is how it learns of it.
func TestCrashPausedPastItsLeaseBeats(t *testing.T) {
	t.Parallel()
	s := newStandstill(t, "cause", 3)
	before := s.counters().Refused
	s.fault.Release()
	s.goesOn()
	s.worker.Expect("cause m-0 lost=true", patience)
	if n := s.counters().Refused; n == before {
		t.Error("no heartbeat was refused")
	}
	s.finish(64)
}

// P5: it is the lease that counts, not that somebody has taken over: with nobody else there, and nothing given
// back yet, a late ack is refused all the same.
func TestCrashPausedPastItsLeaseWithNobodyElse(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	proxy := zqt.Proxy(t, x.srv.Addr())
	x.send(zq.Message{ID: "m-0", Key: "k", Headers: map[string]string{headDo: doWait}})
	p := x.child(workerSpec{
		Addr: proxy.Addr(), Name: "paused", Concurrency: 1, Lease: pausedLease, MaxAttempts: 3, MaxLosses: 5,
	})
	p.Expect("waiting m-0", patience)
	p.Pause()
	var faults []*zqt.Fault
	for _, script := range []string{"heartbeat", "reap", "claim"} { // each would give the message back
		faults = append(faults, proxy.Delay(x.script(script), patience))
	}
	zqt.Eventually(t, patience, x.leaseIsOver, "the lease is over")
	x.must(permit(t.Context(), x.rdb, x.queue, "m-0"))
	p.Resume()
	zqt.Eventually(t, patience, func() bool { return x.counters().Refused == 1 }, "the ack is refused")
	if d, n := x.depth(), x.counters(); d.Running != 1 || n.Acked+n.Reaped != 0 {
		t.Errorf("%+v, %+v", d, n)
	}
	x.healthy()
	for _, f := range faults {
		f.Release()
	}
	x.must(permit(t.Context(), x.rdb, x.queue, "m-0"))
	x.over(1, 0)
	x.terminated(p)
	if n := x.counters(); n.Reaped != 1 || n.Failed != 0 {
		t.Errorf("counters %+v", n)
	}
}

// leaseIsOver tells whether the only lease there is has run out, by the server's clock.
func (x *trial) leaseIsOver() bool {
	x.t.Helper()
	ends, err := x.rdb.ZRangeWithScores(x.t.Context(), x.key("leases"), 0, -1).Result()
	x.must(err)
	now, err := x.rdb.Time(x.t.Context()).Result()
	x.must(err)
	return len(ends) == 1 && now.UnixMicro() > int64(ends[0].Score)
}
