package zq

import (
	"context"
	"fmt"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq/internal/redo"
)

// How a call of the caller's own is tried again: no new try after againFor, unless its context ends before.
// The client's own timeouts and retries come on top, once.
const (
	againFor  = 5 * time.Second
	againBase = 25 * time.Millisecond
	againMost = time.Second
)

// again repeats a call that can be repeated while its failure may pass. An error after which the write may
// have happened is an ErrOutcomeUnknown.
func again(ctx context.Context, call func(context.Context) error) error {
	pace := redo.New(againBase, againMost)
	var err error
	maybe := false
	for until := time.Now().Add(againFor); ; {
		if ctx.Err() != nil && err == nil {
			return context.Cause(ctx)
		}
		if err = call(ctx); err == nil {
			return nil
		}
		maybe = maybe || unsure(err)
		if !transient(err) || ctx.Err() != nil || time.Now().After(until) || pace.Wait(ctx) != nil {
			break
		}
	}
	if maybe {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return err
}
