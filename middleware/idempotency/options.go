package idempotency

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Limits. A value outside gives a *zq.InvalidError that names the field, the value and the range.
const (
	MaxKey    = 512                 // bytes of a business key
	MaxResult = 64 << 10            // bytes of a stored result
	MaxTTL    = 90 * 24 * time.Hour // of any record
	maxError  = 512                 // bytes of a failed run's error
)

// FailurePolicy is who may run under a key after a run has failed. The failed message itself may at once.
type FailurePolicy int

// Failure policies.
const (
	// Release lets any message with the key run. It is the default.
	Release FailurePolicy = iota
	// Hold keeps the key for the failed message until that is done or a dead letter, or FailedTTL is over. Others
	// are postponed meanwhile. A run that was postponed rather than failed holds nothing.
	Hold
)

type config struct {
	running, done, failed time.Duration
	busyLeast, busyMost   time.Duration
	scope                 string
	requireKey            bool
	onFailure             FailurePolicy
	hooks                 hooks
	faults                []error
}

// Option configures the middleware.
type Option interface{ apply(*config) }

type option func(*config)

func (f option) apply(c *config) { f(c) }

// RunningTTL is how long the mark of a run lasts unless it is renewed, and so how long a dead worker keeps other
// messages with the key waiting: 1 s to 24 h, default 5 min. It is renewed every third of it. It should be well
// above the timeouts of the store's client.
func RunningTTL(d time.Duration) Option { return option(func(c *config) { c.running = d }) }

// DoneTTL is how long a key is known as done, counted from then: 1 s to MaxTTL, default 24 h. A duplicate that comes
// later runs.
func DoneTTL(d time.Duration) Option { return option(func(c *config) { c.done = d }) }

// FailedTTL is how long a failure is remembered, and the longest that Hold holds: 1 s to MaxTTL, default 24 h.
func FailedTTL(d time.Duration) Option { return option(func(c *config) { c.failed = d }) }

// BusyDelay bounds how long a message is postponed whose key another one holds: by default about as long as that has
// been running, within 250 ms to 30 s, and not much longer than its mark lasts. 1 ms ≤ least ≤ most ≤ 24 h.
func BusyDelay(least, most time.Duration) Option {
	return option(func(c *config) { c.busyLeast, c.busyMost = least, most })
}

// Scope makes keys unique within a scope that several queues can share, instead of within each queue: 1 to 128 bytes
// of [A-Za-z0-9._-].
func Scope(name string) Option {
	return option(func(c *config) {
		if c.scope = name; !validScope(name) {
			c.faults = append(c.faults, invalid("idempotency.Scope", strconv.Quote(name), scopeWant))
		}
	})
}

// RequireKey makes a message without a business key a dead letter, with ReasonNoKey. Otherwise it runs unchecked.
func RequireKey() Option { return option(func(c *config) { c.requireKey = true }) }

// OnFailure sets who may run after a failure, Release unless set.
func OnFailure(p FailurePolicy) Option { return option(func(c *config) { c.onFailure = p }) }

// OnDuplicate is asked about each message whose key is done, in the handler's place and with the stored record. What
// it returns decides as a handler's result does; without it the message is acked. A panic counts as an error. It
// must be safe for concurrent use and may be called more than once for a message.
func OnDuplicate(f func(ctx context.Context, d *zq.Delivery, r Record) error) Option {
	return option(func(c *config) { c.hooks.duplicate = f })
}

// OnOutcome is told of each delivery what was done with it, once, before the middleware returns. The record is that
// of the other run for Skipped and InProgress, and what was or should have been recorded for Ran and Unrecorded,
// without times. It must be quick and safe for concurrent use; a panic is caught and logged once. Given several
// times, all are told.
func OnOutcome(f func(ctx context.Context, d *zq.Delivery, o Outcome, r Record)) Option {
	return option(func(c *config) {
		if f != nil {
			c.hooks.outcomes = append(c.hooks.outcomes, f)
		}
	})
}

// OnStore is told once when the store goes out of reach, with the error, and once with nil when it has answered
// again for a second after its last failure. It must be safe for concurrent use; a panic is caught and logged once.
func OnStore(f func(err error)) Option { return option(func(c *config) { c.hooks.store = f }) }

// Logger gets changes of the store's state and what nobody else can be told; slog.Default unless set. Never business
// keys or bodies.
func Logger(l *slog.Logger) Option { return option(func(c *config) { c.hooks.logger = l }) }

func newConfig(opts []Option) (*config, error) {
	c := &config{
		running: 5 * time.Minute, done: 24 * time.Hour, failed: 24 * time.Hour,
		busyLeast: 250 * time.Millisecond, busyMost: 30 * time.Second,
	}
	for _, o := range opts {
		if o != nil {
			o.apply(c)
		}
	}
	if c.hooks.logger == nil {
		c.hooks.logger = slog.Default()
	}
	c.faults = append(c.faults,
		between("idempotency.RunningTTL", c.running, time.Second, 24*time.Hour),
		between("idempotency.DoneTTL", c.done, time.Second, MaxTTL),
		between("idempotency.FailedTTL", c.failed, time.Second, MaxTTL),
		between("idempotency.BusyDelay least", c.busyLeast, time.Millisecond, 24*time.Hour),
		between("idempotency.BusyDelay most", c.busyMost, max(c.busyLeast, time.Millisecond), 24*time.Hour),
	)
	if c.onFailure != Release && c.onFailure != Hold {
		c.faults = append(c.faults, invalid("idempotency.OnFailure", int(c.onFailure), "Release or Hold"))
	}
	return c, errors.Join(c.faults...)
}

func between(field string, d, least, most time.Duration) error {
	if d < least || d > most {
		return invalid(field, d, fmt.Sprintf("%s to %s", least, most))
	}
	return nil
}
