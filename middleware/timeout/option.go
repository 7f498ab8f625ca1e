package timeout

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

type config struct {
	limit  time.Duration
	kinds  map[string]time.Duration
	faults []error
}

// Option configures the middleware.
type Option interface{ apply(*config) }

type option func(*config)

func (f option) apply(c *config) { f(c) }

// ForKind sets the limit for messages of one kind, given once for each: 1 ms to zq.MaxDelay, or zq.Unlimited for
// none. It counts by the kind that is stored with the message, so an alias needs a limit of its own.
func ForKind(kind string, limit time.Duration) Option {
	return option(func(c *config) {
		field := "timeout.ForKind(" + strconv.Quote(kind) + ")"
		if kind == "" || len(kind) > zq.MaxKind {
			c.faults = append(c.faults, invalid("timeout.ForKind kind", strconv.Quote(kind), fmt.Sprintf("1 to %d bytes", zq.MaxKind)))
		}
		if _, twice := c.kinds[kind]; twice {
			c.faults = append(c.faults, invalid(field, "given twice", "one limit for a kind"))
		}
		c.kinds[kind] = limit
		c.check(field, limit)
	})
}

func newConfig(limit time.Duration, opts []Option) (*config, error) {
	c := &config{limit: limit, kinds: make(map[string]time.Duration)}
	c.check("timeout.New", limit)
	for _, o := range opts {
		if o != nil {
			o.apply(c)
		}
	}
	return c, errors.Join(c.faults...)
}

func (c *config) check(field string, limit time.Duration) {
	if limit != zq.Unlimited && (limit < time.Millisecond || limit > zq.MaxDelay) {
		c.faults = append(c.faults, invalid(field, limit, fmt.Sprintf("%s to %s, or zq.Unlimited", time.Millisecond, zq.MaxDelay)))
	}
}

// of is the limit for a message.
func (c *config) of(d *zq.Delivery) time.Duration {
	if limit, ok := c.kinds[d.Kind]; ok {
		return limit
	}
	return c.limit
}

func invalid(field string, value any, want string) error {
	return &zq.InvalidError{Field: field, Value: fmt.Sprint(value), Want: want}
}
