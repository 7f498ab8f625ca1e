package zq_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// A message that steps aside lets its key go on, is not charged, and comes back to its place with the ack that
// rouses it.
func TestStepAsideAndRouse(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.enqueue(zq.Message{ID: "early", Key: "k"}, zq.Message{ID: "first", Key: "k"}, zq.Message{ID: "last", Key: "k"})
	ran := make(chan string, 10)
	roused := false // one key: its handlers run one after the other
	b.work(zq.ConsumerConfig{}, func(_ context.Context, d *zq.Delivery) error {
		ran <- d.ID
		if d.Attempt != 1 {
			t.Errorf("%s is at attempt %d", d.ID, d.Attempt)
		}
		switch {
		case d.ID == "early" && !roused:
			return zq.StepAside(time.Hour)
		case d.ID == "first":
			roused = true
			return d.Rouse("early", "nobody", "last")
		}
		return nil
	})
	for _, id := range []string{"early", "first", "last"} {
		b.await(id, zq.StateDone)
	}
	close(ran)
	var order []string
	for id := range ran {
		order = append(order, id)
	}
	// The key's lane was claimed at once, so "last" may have been in hand already when "early" came back.
	if len(order) != 4 || order[0] != "early" || order[1] != "first" {
		t.Errorf("ran %v", order)
	}
	b.verify()
}

// Rouse goes with the ack alone.
func TestRouseNeedsTheAck(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.enqueue(zq.Message{ID: "later", Delay: time.Hour}, zq.Message{ID: "fails"})
	failed := make(chan struct{}, 1)
	b.work(zq.ConsumerConfig{MaxAttempts: 1}, func(_ context.Context, d *zq.Delivery) error {
		if err := d.Rouse("later"); err != nil {
			return err
		}
		failed <- struct{}{}
		return errors.New("no")
	})
	zqtest.Wait(t, failed, limit)
	b.await("fails", zq.StateDead)
	if got := b.state("later"); got != zq.StateDelayed {
		t.Errorf("later is %s", got)
	}
}

func TestRouseRefuses(t *testing.T) {
	t.Parallel()
	for name, ids := range map[string][]string{
		"empty": {""}, "control": {"a\x00"}, "long": {strings.Repeat("x", zq.MaxID+1)}, "many": make([]string, zq.MaxRouse+1),
	} {
		if err := (&zq.Delivery{}).Rouse(ids...); !errors.Is(err, zq.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a run leaves reaches the next one, the dead letter, and the run after its replay.
func TestLeaveReachesTheNextRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.enqueue(zq.Message{ID: "m"})
	traces := make(chan string, 10)
	b.work(zq.ConsumerConfig{MaxAttempts: 2, RetryDelay: func(*zq.Delivery, error) time.Duration { return 0 }},
		func(_ context.Context, d *zq.Delivery) error {
			traces <- d.Trace
			if d.Replays > 0 {
				return nil
			}
			d.Leave("trace-" + string(rune('0'+d.Attempt)))
			for _, bad := range []string{"a|b", "a\nb", "\xff", strings.Repeat("x", zq.MaxTrace+1)} {
				d.Leave(bad) // each is dropped, and what was left before stays
			}
			return errors.New("no|\x00")
		})
	b.await("m", zq.StateDead)
	letter, err := b.in.DeadLetter(t.Context(), "m")
	if err != nil || letter.Trace != "trace-2" || letter.Error != "no|\x00" || letter.Attempts != 2 {
		t.Errorf("dead letter %+v, %v", letter, err)
	}
	if err := b.in.Replay(t.Context(), "m"); err != nil {
		t.Fatal(err)
	}
	b.await("m", zq.StateDone)
	close(traces)
	var got []string
	for trace := range traces {
		got = append(got, trace)
	}
	if diff := cmp.Diff([]string{"", "trace-1", "trace-2"}, got); diff != "" {
		t.Errorf("traces (-want +got):\n%s", diff)
	}
}

// An uncharged run leaves its word too, whether its message waits at once or later, alone or before its key.
func TestLeaveReachesTheNextRunUncharged(t *testing.T) {
	t.Parallel()
	puts := map[string]func(time.Duration) error{"Postpone": zq.Postpone, "StepAside": zq.StepAside}
	for name, put := range puts {
		for _, key := range []string{"", "k"} {
			for _, delay := range []time.Duration{0, time.Millisecond} {
				t.Run(name+" key="+key+" "+delay.String(), func(t *testing.T) {
					t.Parallel()
					b := newBench(t)
					b.enqueue(zq.Message{ID: "m", Key: key})
					traces := make(chan string, 10)
					b.work(zq.ConsumerConfig{}, func(_ context.Context, d *zq.Delivery) error {
						traces <- d.Trace
						if d.Trace != "" {
							return nil
						}
						d.Leave("first")
						return put(delay)
					})
					zqtest.Wait(t, traces, limit)
					if got := zqtest.Wait(t, traces, limit); got != "first" {
						t.Errorf("the second run found %q", got)
					}
				})
			}
		}
	}
}

// Follow-ups take along what is carried, unless they have it, or no room for it.
func TestCarryReachesFollowUps(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.enqueue(zq.Message{ID: "m"})
	full := map[string]string{"big": strings.Repeat("x", zq.MaxHeaderBytes-3)}
	headers := make(chan map[string]string, 10)
	b.work(zq.ConsumerConfig{Concurrency: 1}, func(_ context.Context, d *zq.Delivery) error {
		if d.ID != "m" {
			headers <- d.Headers
			return nil
		}
		d.Carry("traceparent", "t")
		return d.Then(zq.Message{ID: "1"}, zq.Message{ID: "2", Headers: map[string]string{"traceparent": "own"}},
			zq.Message{ID: "3", Headers: full})
	})
	want := []map[string]string{{"traceparent": "t"}, {"traceparent": "own"}, full}
	for _, w := range want {
		if diff := cmp.Diff(w, <-headers); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// Both are times of the server's clock.
func TestDeliveryTimes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	due := time.Now().Add(20 * time.Millisecond).Truncate(time.Microsecond)
	b.enqueue(zq.Message{ID: "now"}, zq.Message{ID: "delay", Delay: 30 * time.Millisecond}, zq.Message{ID: "due", Due: due},
		zq.Message{ID: "past", Due: due.Add(-time.Hour)})
	seen := make(chan *zq.Delivery, 4)
	b.work(zq.ConsumerConfig{}, func(_ context.Context, d *zq.Delivery) error {
		seen <- d
		return nil
	})
	for range 4 {
		d := <-seen
		want := map[string]time.Time{
			"now": d.EnqueuedAt, "delay": d.EnqueuedAt.Add(30 * time.Millisecond), "due": due, "past": d.EnqueuedAt,
		}[d.ID]
		if !d.DueAt.Equal(want) || d.ClaimedAt.Before(d.DueAt) {
			t.Errorf("%s: due %s, want %s; claimed %s", d.ID, d.DueAt, want, d.ClaimedAt)
		}
	}
}
