package zq_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		err  error
		want zq.Verdict
	}{
		"nil":         {nil, zq.Verdict{Action: zq.ActionAck}},
		"plain":       {broken, zq.Verdict{Action: zq.ActionRetry}},
		"retry after": {fmt.Errorf("w: %w", zq.RetryAfter(time.Second, broken)), zq.Verdict{Action: zq.ActionRetry, After: time.Second, Asked: true}},
		"postpone":    {zq.Postpone(time.Minute), zq.Verdict{Action: zq.ActionPostpone, After: time.Minute, Asked: true}},
		"dead":        {zq.Dead("r", broken), zq.Verdict{Action: zq.ActionDead, Reason: "r"}},
		"joined": {
			errors.Join(zq.RetryAfter(time.Second, nil), zq.Postpone(0), zq.Dead("r", nil)),
			zq.Verdict{Action: zq.ActionDead, Reason: "r"},
		},
	} {
		if got := zq.Explain(c.err); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// A handler knows whether this run is its message's last.
func TestDeliveryMaxAttempts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	last := make(chan bool, 4)
	b.work(zq.ConsumerConfig{
		MaxAttempts: 2, RetryDelay: func(*zq.Delivery, error) time.Duration { return 0 },
	}, func(_ context.Context, d *zq.Delivery) error {
		last <- d.Attempt == d.MaxAttempts
		return errors.New("again")
	})
	b.enqueue(zq.Message{ID: "a"})
	b.await("a", zq.StateDead)
	if first, second := <-last, <-last; first || !second {
		t.Errorf("the last run: first %t, second %t", first, second)
	}
}
