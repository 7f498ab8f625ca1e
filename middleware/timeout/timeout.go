package timeout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// New makes the middleware. limit is for messages of kinds without a limit of their own: 1 ms to zq.MaxDelay, or
// zq.Unlimited for none. New lists all that is wrong with its arguments, and does no I/O. What it makes is safe for
// concurrent use and can wrap any number of handlers.
func New(limit time.Duration, opts ...Option) (zq.Middleware, error) {
	c, err := newConfig(limit, opts)
	if err != nil {
		return nil, err
	}
	return func(next zq.Handler) zq.Handler {
		return zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
			limit := c.of(d)
			if limit == zq.Unlimited {
				return next.Handle(ctx, d)
			}
			return bounded(ctx, d, next, limit)
		})
	}, nil
}

func bounded(outer context.Context, d *zq.Delivery, next zq.Handler, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(outer, limit, zq.ErrTimeout)
	defer cancel()
	err := next.Handle(ctx, d)
	if err == nil || !struck(ctx, outer) {
		return err
	}
	return named(err, limit)
}

// struck tells whether it was the limit that ended ctx. The consumer's MaxRun ends outer with the same cause, and
// the core says so itself.
func struck(ctx, outer context.Context) bool {
	return errors.Is(context.Cause(ctx), zq.ErrTimeout) && !errors.Is(context.Cause(outer), zq.ErrTimeout)
}

// named gives an error that only passes the end of the context on the name of what ended it.
func named(err error, limit time.Duration) (out error) {
	defer func() {
		if recover() != nil { // a method of the handler's error: whoever is outside decides on it
			out = err
		}
	}()
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, zq.ErrTimeout) {
		return fmt.Errorf("%w (%s): %w", zq.ErrTimeout, limit, err)
	}
	return err
}
