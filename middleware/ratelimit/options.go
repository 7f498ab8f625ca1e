package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Limits of the middleware's settings.
const (
	DefaultTimeout = time.Second
	MaxTimeout     = time.Minute
)

type config struct {
	name    func(*zq.Delivery) string
	named   int
	closed  bool
	timeout time.Duration
	tell    func(error)
	logger  *slog.Logger
}

// Option configures the middleware.
type Option interface{ apply(*config) }

type option func(*config)

func (f option) apply(c *config) { f(c) }

// PerKey gives each ordering key of each queue a rate of its own. Messages without a key share one, their queue's.
func PerKey() Option {
	return By(func(d *zq.Delivery) string {
		if d.Key == "" {
			return d.Queue
		}
		return d.Queue + "/" + d.Key
	})
}

// By gives all messages one rate for which f returns the same name, those of other queues with the same limiter
// included; "" means no limit. Without By and PerKey the name is the queue. f must be safe for concurrent use and give
// one message the same name each time; a panic counts as a failed run.
func By(f func(d *zq.Delivery) string) Option {
	return option(func(c *config) { c.name, c.named = f, c.named+1 })
}

// FailOpen lets messages run while the limiter is out of reach. It is the default.
func FailOpen() Option { return option(func(c *config) { c.closed = false }) }

// FailClosed postpones messages while the limiter is out of reach, for 1 to 30 seconds each time.
func FailClosed() Option { return option(func(c *config) { c.closed = true }) }

// Timeout bounds one question to the limiter: 1 ms to MaxTimeout, DefaultTimeout unless set. Keep it below what bounds
// the whole run: a run that ends first says nothing about the limiter, and has failed.
func Timeout(d time.Duration) Option { return option(func(c *config) { c.timeout = d }) }

// OnLimiter is told once when the limiter goes out of reach, with the error, and once with nil when it answers again.
// It must be quick and safe for concurrent use; a panic is caught and logged once.
func OnLimiter(f func(err error)) Option { return option(func(c *config) { c.tell = f }) }

// Logger gets changes of the limiter's state, and how many messages passed by it meanwhile; slog.Default unless set.
// Never names or keys.
func Logger(l *slog.Logger) Option { return option(func(c *config) { c.logger = l }) }

func newConfig(l Limiter, opts []Option) (*config, error) {
	c := &config{name: func(d *zq.Delivery) string { return d.Queue }, timeout: DefaultTimeout}
	for _, o := range opts {
		if o != nil {
			o.apply(c)
		}
	}
	if c.logger == nil {
		c.logger = slog.Default()
	}
	var faults []error
	if missing(l) {
		faults = append(faults, invalid("ratelimit limiter", "nil", "a Limiter"))
	}
	if c.name == nil {
		faults = append(faults, invalid("ratelimit.By", "nil", "a function"))
	}
	if c.named > 1 {
		faults = append(faults, invalid("ratelimit.By and PerKey", fmt.Sprintf("given %d times", c.named), "one of them, once"))
	}
	if c.timeout < time.Millisecond || c.timeout > MaxTimeout {
		faults = append(faults, invalid("ratelimit.Timeout", c.timeout, fmt.Sprintf("%s to %s", time.Millisecond, MaxTimeout)))
	}
	return c, errors.Join(faults...)
}

// missing is true of what Local and Shared return with an error as well.
func missing(l Limiter) bool {
	switch l := l.(type) {
	case nil:
		return true
	case *LocalLimiter:
		return l == nil
	case *SharedLimiter:
		return l == nil
	}
	return false
}

// question bounds how long the limiter may take.
func (c *config) question(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.timeout, errSlow)
}

var errSlow = errors.New("ratelimit: the limiter did not answer in time")
