package idempotency_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// Two messages of one key in two consumers run once: the second waits for the first and is acked without a run.
func TestOneRunForTwoMessages(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	running, goOn := make(chan string, 2), make(chan struct{})
	var runs tally
	work := func(ctx context.Context, d *zq.Delivery) error {
		running <- d.ID
		<-goOn
		return runs.handle(ctx, d)
	}
	x.start(x.guard(work))
	x.start(x.guard(work))
	x.send("a", "o-1")
	zqtest.Wait(t, running, limit)
	x.send("b", "o-1")
	for range 3 { // it looks again and again, and is not charged for it
		x.until(idempotency.InProgress)
	}
	close(goOn)
	x.until(idempotency.Skipped)
	if dead := x.drained(); dead != 0 {
		t.Errorf("%d dead letters", dead)
	}
	runs.want(t, 1)
}

// A run that takes three times as long as its mark lasts keeps the mark: a duplicate is still refused (FAULTS B28).
func TestMarkOutlivesItsTTL(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	running, goOn := make(chan time.Time, 1), make(chan struct{})
	var runs tally
	x.start(x.guard(func(ctx context.Context, d *zq.Delivery) error {
		running <- time.Now()
		<-goOn
		if err := ctx.Err(); err != nil {
			return err
		}
		return runs.handle(ctx, d)
	}, idempotency.RunningTTL(time.Second)))
	x.send("a", "o-1")
	began := zqtest.Wait(t, running, limit)
	zqtest.Eventually(t, limit, func() bool {
		if r := x.record("o-1"); r.State != idempotency.StateRunning {
			t.Fatalf("%v after the start: %+v", time.Since(began), r)
		}
		return time.Since(began) > 3*time.Second
	}, "three lifetimes of the mark")
	x.send("b", "o-1")
	x.until(idempotency.InProgress)
	close(goOn)
	x.drained()
	runs.want(t, 1)
}

// Many keys, each in several messages, many at once: each key runs once.
func TestEachKeyOnceConcurrentSafe(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	const keys, copies = 60, 5
	runs := make(chan string, keys*copies)
	h := x.guard(func(_ context.Context, d *zq.Delivery) error {
		runs <- d.Headers["order"]
		return nil
	})
	for range 2 {
		x.start(h, func(c *zq.ConsumerConfig) { c.Concurrency = 50 })
	}
	msgs := make([]zq.Message, 0, keys*copies)
	for i := range keys * copies {
		msgs = append(msgs, zq.Message{Headers: map[string]string{"order": order(i % keys)}})
	}
	_, err := x.prod.EnqueueBatch(t.Context(), msgs)
	x.must(err)
	zqtest.Eventually(t, limit, func() bool {
		return x.count(idempotency.Ran)+x.count(idempotency.Skipped) == keys*copies
	}, "an outcome of every message")
	x.drained()
	if got := x.count(idempotency.Ran); got != keys || len(runs) != keys {
		t.Errorf("%d runs of %d keys, %d of them told", len(runs), keys, got)
	}
	for _, key := range x.keys() {
		if ttl := x.rdb.PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > 24*time.Hour {
			t.Errorf("key %q expires in %v", key, ttl)
		}
	}
}

// Every record goes by itself.
func TestNothingStays(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	x.start(x.guard(func(_ context.Context, d *zq.Delivery) error {
		if d.ID == "dead" {
			return zq.Dead("bad", nil)
		}
		return nil
	}, idempotency.DoneTTL(time.Second), idempotency.FailedTTL(time.Second)))
	x.send("done", "o-1")
	x.send("dead", "o-2")
	x.until(idempotency.Ran)
	x.until(idempotency.Ran)
	if n := len(x.keys()); n == 0 {
		t.Fatal("no record of anything")
	}
	zqtest.Eventually(t, limit, func() bool { return len(x.keys()) == 0 }, "the end of all records")
	x.drained()
}

// A stored result reaches the duplicate's hook, whose word decides.
func TestResultIsReplayed(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	replayed := make(chan idempotency.Record, 10)
	x.start(x.guard(func(ctx context.Context, _ *zq.Delivery) error {
		if err := idempotency.SetResult(ctx, make([]byte, idempotency.MaxResult+1)); !errors.Is(err, zq.ErrInvalid) {
			t.Errorf("too large a result: %v", err)
		}
		result := []byte("receipt 17")
		err := idempotency.SetResult(ctx, result)
		result[0] = 'X' // it was copied
		return err
	}, idempotency.OnDuplicate(func(_ context.Context, d *zq.Delivery, r idempotency.Record) error {
		replayed <- r
		if d.ID == "unwanted" {
			return zq.Dead("duplicate", nil)
		}
		return nil
	})))
	x.send("a", "o-1")
	x.until(idempotency.Ran)
	x.send("b", "o-1")
	r := zqtest.Wait(t, replayed, limit)
	if string(r.Result) != "receipt 17" || r.State != idempotency.StateDone || r.Since.IsZero() {
		t.Errorf("replayed %+v", r)
	}
	x.send("unwanted", "o-1")
	zqtest.Wait(t, replayed, limit)
	if dead := x.drained(); dead != 1 {
		t.Errorf("%d dead letters, want the one the hook asked for", dead)
	}
	if err := idempotency.SetResult(t.Context(), nil); !errors.Is(err, idempotency.ErrNoRun) {
		t.Errorf("a result outside of a run: %v", err)
	}
}

// What a handler says decides what is left of its mark.
func TestWhatIsLeftOfARun(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	cases := map[string]struct {
		say  error
		hold bool
		want idempotency.State
	}{
		"ack":         {nil, false, idempotency.StateDone},
		"error":       {boom, false, idempotency.StateFailed},
		"error, hold": {boom, true, idempotency.StateFailed},
		"retry after": {zq.RetryAfter(time.Hour, boom), false, idempotency.StateFailed},
		"postpone":    {zq.Postpone(time.Hour), true, idempotency.StateNone},
		"dead":        {zq.Dead("bad", boom), true, idempotency.StateFailed},
		"rude error":  {rude{}, false, idempotency.StateFailed},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTrial(t)
			policy := idempotency.Release
			if c.hold {
				policy = idempotency.Hold
			}
			h := x.guard(func(context.Context, *zq.Delivery) error { return c.say }, idempotency.OnFailure(policy))
			err := h.Handle(t.Context(), delivery(x.queue, "a", "o-1"))
			if name != "rude error" && !errors.Is(err, c.say) {
				t.Errorf("the handler's %v became %v", c.say, err)
			}
			r := x.record("o-1")
			if r.State != c.want || r.Held != (c.hold && zq.Explain(c.say).Action == zq.ActionRetry) {
				t.Errorf("left: %+v", r)
			}
		})
	}
}

// rude is an error whose methods panic.
type rude struct{}

func (rude) Error() string { panic("no text") }
func (rude) As(any) bool   { panic("no type") }

// delivery is one built by hand, with a business key.
func delivery(queue, id, order string) *zq.Delivery {
	return &zq.Delivery{Queue: queue, ID: id, Attempt: 1, Headers: map[string]string{"order": order}}
}

// Under Hold a failure keeps others waiting until the same message is through; when that dies they may run.
func TestHold(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]error{"succeeds": nil, "dies": errors.New("for good")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTrial(t)
			failed, goOn, others := make(chan struct{}), make(chan struct{}), make(chan string, 10)
			x.start(x.guard(func(_ context.Context, d *zq.Delivery) error {
				switch {
				case d.ID != "a":
					others <- d.ID
				case d.Attempt == 1:
					return errors.New("at first")
				default:
					close(failed)
					<-goOn
					return last
				}
				return nil
			}, idempotency.OnFailure(idempotency.Hold)), func(c *zq.ConsumerConfig) {
				c.MaxAttempts = 2
				c.RetryDelay = func(*zq.Delivery, error) time.Duration { return 300 * time.Millisecond }
			})
			x.send("a", "o-1")
			x.until(idempotency.Ran) // and failed
			x.send("b", "o-1")
			x.until(idempotency.InProgress)
			zqtest.Wait(t, failed, limit)
			if len(others) > 0 {
				t.Errorf("%s ran while the key was held", <-others)
			}
			close(goOn)
			x.drained()
			if ran := len(others) == 1; ran != (last != nil) {
				t.Errorf("the other message ran: %t", ran)
			}
		})
	}
}

// A panic and an ended goroutine free the key, and the message is tried again.
func TestPanicAndGoexit(t *testing.T) {
	t.Parallel()
	var nothing any
	for name, leave := range map[string]func(){"panic": func() { panic(nothing) }, "goexit": goexit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTrial(t)
			var runs tally
			x.start(x.guard(func(ctx context.Context, d *zq.Delivery) error {
				if d.Attempt == 1 {
					leave()
				}
				return runs.handle(ctx, d)
			}))
			x.send("a", "o-1")
			x.drained()
			runs.want(t, 1)
			if r := x.record("o-1"); r.State != idempotency.StateDone {
				t.Errorf("left: %+v", r)
			}
		})
	}
}
