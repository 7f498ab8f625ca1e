package recovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/zqueue/zqueue/zqfx/zq"
)

const maxReason = 64 // bytes, as zq.Dead keeps

type config struct {
	reason string // "" for an error that is tried again
	hook   func(context.Context, *zq.Delivery, *zq.PanicError)
	logger *slog.Logger
	faults []error
}

// Option configures the middleware.
type Option interface{ apply(*config) }

type option func(*config)

func (f option) apply(c *config) { f(c) }

// AsDead makes a message whose handler panics a dead letter at once, with this reason: a short word to filter by,
// 1 to 64 bytes. A panic that only passes a shutdown on is left to the core.
func AsDead(reason string) Option {
	return option(func(c *config) {
		if c.reason = reason; reason == "" || len(reason) > maxReason {
			c.faults = append(c.faults, &zq.InvalidError{
				Field: "recovery.AsDead", Value: strconv.Quote(reason), Want: fmt.Sprintf("1 to %d bytes", maxReason),
			})
		}
	})
}

// OnPanic is told of each panic, on the goroutine of the run and before anything is decided. It must be safe for
// concurrent use; its own panic is caught and logged once.
func OnPanic(f func(ctx context.Context, d *zq.Delivery, p *zq.PanicError)) Option {
	return option(func(c *config) { c.hook = f })
}

// Logger gets what nobody else can be told; slog.Default unless set. Never bodies, keys or headers.
func Logger(l *slog.Logger) Option { return option(func(c *config) { c.logger = l }) }

func newConfig(opts []Option) (*config, error) {
	c := &config{}
	for _, o := range opts {
		if o != nil {
			o.apply(c)
		}
	}
	if c.logger == nil {
		c.logger = slog.Default()
	}
	return c, errors.Join(c.faults...)
}
