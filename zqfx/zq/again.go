package zq

import (
	"context"
	"fmt"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq/internal/redo"
)

// How a call of the caller's own is tried again: about three seconds in all, unless its context ends before.
const (
	againTries = 7
	againBase  = 25 * time.Millisecond
	againMost  = time.Second
)

// again repeats a call that can be repeated while its failure may pass. An error after which the write may
// have happened is an ErrOutcomeUnknown.
func again(ctx context.Context, call func(context.Context) error) error {
	pace := redo.New(againBase, againMost)
	var err error
	maybe := false
	for range againTries {
		if ctx.Err() != nil && err == nil {
			return context.Cause(ctx)
		}
		if err = call(ctx); err == nil {
			return nil
		}
		maybe = maybe || unsure(err)
		if !transient(err) || ctx.Err() != nil || pace.Wait(ctx) != nil {
			break
		}
	}
	if maybe {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return err
}
