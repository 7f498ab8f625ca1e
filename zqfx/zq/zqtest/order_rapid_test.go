package zqtest_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// lane is a model of one key that keeps the promise: claims of several
// messages, outcomes recorded in groups, failures, crashes.
type lane struct {
	t       *rapid.T
	r       zqtest.Recorder
	waiting []string // in order
	workers int
	fates   *rapid.Generator[zqtest.Op]
}

func (l *lane) log(op zqtest.Op, id, worker string) {
	l.r.Add(zqtest.Event{Op: op, ID: id, Worker: worker})
}

// claim runs a few messages by a worker of their own, which may be killed
// between any two steps and may or may not hear that its outcomes are recorded.
func (l *lane) claim() {
	l.workers++
	worker := fmt.Sprint("w", l.workers)
	batch := l.waiting[:rapid.IntRange(1, len(l.waiting)).Draw(l.t, "claimed")]
	unrecorded := 0 // of the batch, from its start
	record := func() {
		for _, id := range batch[:unrecorded] {
			if rapid.Bool().Draw(l.t, "heard") {
				l.log(zqtest.Acked, id, "")
			}
		}
		l.waiting, batch, unrecorded = l.waiting[unrecorded:], batch[unrecorded:], 0
	}
	for unrecorded < len(batch) {
		id := batch[unrecorded]
		l.log(zqtest.Started, id, worker)
		fate := l.fates.Draw(l.t, "fate")
		l.log(fate, id, worker)
		switch fate {
		case zqtest.Lost:
			return
		case zqtest.Failed, zqtest.Postponed:
			record() // and gives the rest back
			return
		}
		unrecorded++
		if rapid.Bool().Draw(l.t, "record") {
			record()
		}
	}
	record()
}

func newLane(t *rapid.T, fates ...zqtest.Op) *lane {
	l := &lane{t: t, fates: rapid.SampledFrom(fates)}
	for i := range rapid.IntRange(2, 8).Draw(t, "messages") {
		id := fmt.Sprint("m", i)
		l.waiting = append(l.waiting, id)
		l.r.Add(zqtest.Event{Op: zqtest.Enqueued, ID: id, Key: "k", Seq: int64(i)})
	}
	return l
}

// However a lane that keeps its promise fails and crashes, no check complains.
func TestChecksRaiseNoFalseAlarm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := newLane(t, zqtest.Succeeded, zqtest.Succeeded, zqtest.Succeeded, zqtest.Failed, zqtest.Postponed, zqtest.Lost)
		for range 20 {
			if len(l.waiting) > 0 {
				l.claim()
			}
		}
		l.fates = rapid.Just(zqtest.Succeeded)
		for len(l.waiting) > 0 {
			l.claim()
		}
		for _, check := range []func() []zqtest.Violation{
			l.r.CheckOrder, l.r.CheckAckFinal, l.r.CheckOneHolder, func() []zqtest.Violation { return l.r.CheckAllDone() },
		} {
			for _, v := range check() {
				t.Errorf("%v", v)
			}
		}
	})
}

// In a run without faults, exchanging two messages of the history is caught.
func TestCheckOrderCatchesAnyExchange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := newLane(t, zqtest.Succeeded)
		n := len(l.waiting)
		for len(l.waiting) > 0 {
			l.claim()
		}
		i := rapid.IntRange(0, n-2).Draw(t, "first")
		j := rapid.IntRange(i+1, n-1).Draw(t, "second")
		swap := map[string]string{fmt.Sprint("m", i): fmt.Sprint("m", j), fmt.Sprint("m", j): fmt.Sprint("m", i)}
		var bad zqtest.Recorder
		for _, e := range l.r.Events() {
			if other, is := swap[e.ID]; is && e.Op != zqtest.Enqueued {
				e.ID = other
			}
			bad.Add(e)
		}
		if len(bad.CheckOrder()) == 0 {
			t.Errorf("m%d and m%d changed places unseen", i, j)
		}
	})
}
