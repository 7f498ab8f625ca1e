package sequence_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware/sequence"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// timed is a trial whose clock stands from the first pass on, and moves by it alone: a limit of an hour is over at
// once. A consumer starts before that.
type timed struct {
	*trial
	redis *zqtest.EmbeddedRedis
}

func newTimed(t *testing.T) *timed {
	t.Helper()
	e := zqtest.Embedded(t)
	return &timed{trial: newTrial(t, e.Client()), redis: e}
}

// pass lets time pass when nothing runs, whose lease would be over by it, and waits until so many reports of an
// outcome are there.
func (x *timed) pass(d time.Duration, o sequence.Outcome, total int) {
	x.t.Helper()
	x.idle()
	x.redis.Advance(d)
	x.eventually(func() bool { return x.told(o) >= total }, "after %v: %d reports of %s", d, total, o)
	if n := x.told(o); n != total {
		x.t.Errorf("%d reports of %s, want %d", n, o, total)
	}
}

func (x *timed) idle() {
	x.t.Helper()
	x.eventually(func() bool {
		d, err := x.look.Depth(context.Background())
		return err == nil && d.Running == 0
	}, "nothing runs")
}

// A gap that outlasts its limit is reported once for each number that waits behind it, and then they die. What
// is confirmed stays, so that the gap can be closed and the dead be replayed.
func TestGapDead(t *testing.T) {
	t.Parallel()
	x := newTimed(t)
	x.start(nil)
	x.send("k", 1, 3, 4)
	x.waiting(2)
	x.pass(59*time.Minute, sequence.Waits, 2)
	x.pass(time.Minute, sequence.Overdue, 1) // 4 gives way to 3, which decides about the gap
	x.pass(time.Minute, sequence.GapDied, 1)
	x.dead(id("k", 3) + " " + sequence.ReasonGap)
	r := x.reported(sequence.GapDied)
	if r.Number != 3 || r.From != 2 || r.To != 2 || r.Confirmed != 1 || r.Key != "k" || r.Since.IsZero() {
		t.Errorf("reported %+v", r)
	}
	x.pass(61*time.Minute, sequence.Overdue, 2)
	x.pass(time.Minute, sequence.GapDied, 2)
	if s := x.state("k"); s.Confirmed != 1 || s.Waiting != 0 || len(s.Skipped) > 0 {
		t.Errorf("state %+v", s)
	}
	x.send("k", 2)
	x.ordered("k", 1, 2)
	for _, n := range []int64{4, 3} {
		if err := x.look.Replay(t.Context(), id("k", n)); err != nil {
			t.Fatal(err)
		}
	}
	x.redis.Advance(0)
	x.ordered("k", 1, 2, 3, 4)
}

func (x *trial) reported(o sequence.Outcome) sequence.Report {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, r := range x.reports {
		if r.Outcome == o {
			return r
		}
	}
	return sequence.Report{}
}

// A skipped number is never dropped: it is a dead letter when it comes after all.
func TestGapSkip(t *testing.T) {
	t.Parallel()
	x := newTimed(t)
	failed := false
	x.start(func(d *zq.Delivery) error {
		if d.Headers[sequence.Header] == "4" && !failed {
			failed = true // the skip counts with the success
			return zq.RetryAfter(time.Second, errors.New("not yet"))
		}
		return nil
	}, sequence.OnGap(sequence.GapSkip))
	x.send("k", 1, 4, 5)
	x.waiting(2)
	x.pass(time.Hour, sequence.Overdue, 1)
	x.pass(time.Minute, sequence.GapSkipped, 1)
	x.pass(time.Second, sequence.GapSkipped, 2)
	x.ordered("k", 1, 4, 5)
	x.send("k", 3, 6)
	x.put(zq.Message{ID: "twin", Key: "k", Headers: map[string]string{sequence.Header: "4"}})
	x.dead(id("k", 3) + " " + sequence.ReasonLate)
	x.ordered("k", 1, 4, 5, 6)
	x.eventually(func() bool { return x.told(sequence.Duplicate) == 1 }, "4 is a duplicate")
	if s := x.state("k"); s.Confirmed != 6 || len(s.Skipped) != 1 || s.Skipped[0] != (sequence.Range{From: 2, To: 3}) {
		t.Errorf("state %+v", s)
	}
}

// 9 came first, so its time is over first. But 7 is there too: the gap is before 7, and 8 may still come.
func TestLowestNumberGoesFirst(t *testing.T) {
	t.Parallel()
	x := newTimed(t)
	x.start(nil, sequence.OnGap(sequence.GapSkip))
	x.send("k", 9)
	x.waiting(1)
	x.redis.Advance(30 * time.Minute)
	x.send("k", 7)
	x.waiting(2)
	x.pass(30*time.Minute, sequence.Waits, 3)
	if n := x.told(sequence.Overdue); n > 0 {
		t.Errorf("9 does not wait for 7: %d reports of a gap", n)
	}
	x.pass(30*time.Minute, sequence.Overdue, 1)
	x.pass(time.Minute, sequence.GapSkipped, 1)
	x.ordered("k", 7)
	x.send("k", 8)
	x.ordered("k", 7, 8, 9)
}

// No consumer ran while the limit passed, and the predecessor is in the queue by then: that is no gap.
func TestPredecessorBehindInTheQueue(t *testing.T) {
	t.Parallel()
	x := newTimed(t)
	x.prefetch = 1 // so that the predecessor is not claimed along by chance
	x.start(nil)
	x.send("k", 3, 2)
	x.waiting(2)
	if _, err := x.look.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.redis.Advance(2 * time.Hour)
	x.send("k", 1)
	if _, err := x.look.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.redis.Advance(0)
	x.ordered("k", 1, 2, 3)
	if n := x.told(sequence.GapDied); n > 0 {
		t.Errorf("%d messages died", n)
	}
}

// A number that waits for ever, because its message was removed, holds a higher one back for one limit more.
func TestRemovedNumberIsForgotten(t *testing.T) {
	t.Parallel()
	x := newTimed(t)
	x.start(nil, sequence.OnGap(sequence.GapSkip))
	x.send("k", 9)
	x.waiting(1)
	x.rdb.HSet(t.Context(), zq.EffectKey(x.queue, "seq:k"), "w:7", "w 1 1 0 0\ngone")
	x.rdb.ZAdd(t.Context(), zq.EffectKey(x.queue, "seqw:k"), redis.Z{Score: 7, Member: "7"})
	x.pass(time.Hour, sequence.Waits, 2)
	x.pass(time.Hour+2*time.Minute, sequence.Waits, 3)
	x.pass(time.Second, sequence.Overdue, 1)
	x.pass(time.Minute, sequence.GapSkipped, 1)
	x.ordered("k", 9)
	if s := x.state("k"); s.Waiting != 0 || s.Confirmed != 9 {
		t.Errorf("state %+v", s)
	}
}

// The state of a key that is forgotten begins anew.
func TestStateIsKeptForItsTime(t *testing.T) {
	t.Parallel()
	x := newTimed(t)
	x.start(nil, sequence.Keep(24*time.Hour))
	x.send("k", 1, 2)
	x.ordered("k", 1, 2)
	x.redis.Advance(24 * time.Hour)
	x.send("k", 3)
	x.waiting(1)
	if s := x.state("k"); s.Known {
		t.Errorf("state %+v", s)
	}
}
