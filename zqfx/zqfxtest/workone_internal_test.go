package zqfxtest

import (
	"context"
	"errors"
	"testing"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// The first message runs; every other waits for the consumer's end, and what becomes of it is not told.
func TestOneHoldsAllOthers(t *testing.T) {
	t.Parallel()
	runs := 0
	count := zq.HandlerFunc(func(context.Context, *zq.Delivery) error { runs++; return nil })
	o := &one{decided: make(chan struct{}), handler: count}
	first, second := &zq.Delivery{}, &zq.Delivery{Attempt: 2}
	over := errors.New("over")
	ctx, end := context.WithCancelCause(t.Context())
	end(over)
	if err := o.Handle(ctx, first); err != nil || runs != 1 {
		t.Errorf("the first: %v, %d runs", err, runs)
	}
	if err := o.Handle(ctx, second); !errors.Is(err, over) || runs != 1 {
		t.Errorf("the second: %v, %d runs", err, runs)
	}
	o.observe(second, zq.Decision{Action: zq.ActionRelease})
	if ran := o.outcome(); ran != nil {
		t.Errorf("before the first is decided: %+v", ran)
	}
	o.observe(first, zq.Decision{Action: zq.ActionAck})
	o.observe(second, zq.Decision{Action: zq.ActionRelease})
	if ran := o.outcome(); ran == nil || ran.Action != zq.ActionAck || ran.Attempt != 0 {
		t.Errorf("the outcome is %+v", ran)
	}
	select {
	case <-o.decided:
	default:
		t.Error("who waits was not told")
	}
	o.observe(first, zq.Decision{Action: zq.ActionRetry}) // its effects did not hold
	if ran := o.outcome(); ran.Action != zq.ActionRetry {
		t.Errorf("the outcome is %+v", ran)
	}
}
