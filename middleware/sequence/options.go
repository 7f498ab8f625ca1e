package sequence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Defaults and limits. A value outside gives a *zq.InvalidError that names the field, the value and the range.
const (
	DefaultLimit    = time.Hour
	MinLimit        = 10 * time.Millisecond
	MaxLimit        = 365 * 24 * time.Hour
	DefaultKeep     = 90 * 24 * time.Hour
	MaxKeep         = zq.MaxDelay
	DefaultMaxAhead = 100_000
)

// Policy is what becomes of a message when the gap before it has outlasted its limit.
type Policy int

// Policies.
const (
	// GapDead makes the message a dead letter, with ReasonGap. What is confirmed stays as it is, so the missing
	// numbers may still come, and the message can be replayed then. It is the default.
	GapDead Policy = iota
	// GapSkip runs the message. If that ends well, the missing numbers count as skipped: one that comes after all
	// is a dead letter, with ReasonLate.
	GapSkip
)

type config struct {
	first, ahead int64
	limit, keep  time.Duration
	policy       Policy
	pass         bool
	number       func(*zq.Delivery) (int64, error)
	outcomes     []func(context.Context, *zq.Delivery, Report)
	logger       *slog.Logger
}

// Option configures the middleware.
type Option interface{ apply(*config) }

type option func(*config)

func (f option) apply(c *config) { f(c) }

// First is the first number of each key: 0 to MaxNumber, default 1.
func First(n int64) Option { return option(func(c *config) { c.first = n }) }

// Limit is how long a message waits for its predecessor before the gap counts: MinLimit to MaxLimit, default
// DefaultLimit. It should be well above the time that all retries of one message take, if the consumer lets the
// messages behind it pass (zq.SkipKey).
func Limit(d time.Duration) Option { return option(func(c *config) { c.limit = d }) }

// OnGap sets what becomes of a message when the gap before it has outlasted its limit, GapDead unless set.
func OnGap(p Policy) Option { return option(func(c *config) { c.policy = p }) }

// MaxAhead bounds how far a number may be ahead of the last confirmed one: 1 to MaxNumber, default DefaultMaxAhead.
// A message farther ahead is a dead letter at once, with ReasonGap. So it bounds too how many messages of one key
// wait, and what a wrong number does under GapSkip.
func MaxAhead(n int64) Option { return option(func(c *config) { c.ahead = n }) }

// Keep is how long the state of a key is kept after its last change, DefaultKeep unless set: at least four times
// the limit, at most MaxKeep, or 0 for as long as Redis keeps it. A key whose state is gone begins at the first
// number again: a message with a higher one waits for that.
func Keep(d time.Duration) Option { return option(func(c *config) { c.keep = d }) }

// PassUnnumbered lets messages without a number pass, unchecked and in the order of the queue alone. Otherwise they
// are dead letters, with ReasonNumber.
func PassUnnumbered() Option { return option(func(c *config) { c.pass = true }) }

// NumberOf reads numbers by f instead of from Header. f returns ErrUnnumbered if there is none; any other error
// makes the message a dead letter, with ReasonNumber. It must be safe for concurrent use, and give one message the
// same number each time.
func NumberOf(f func(d *zq.Delivery) (int64, error)) Option {
	return option(func(c *config) { c.number = f })
}

// OnOutcome is told what the middleware does with a message, where that is not just to run it. Given several times,
// all are told. It must be quick and safe for concurrent use; a panic is caught and logged once. After a crash it
// may be told the same again.
func OnOutcome(f func(ctx context.Context, d *zq.Delivery, r Report)) Option {
	return option(func(c *config) {
		if f != nil {
			c.outcomes = append(c.outcomes, f)
		}
	})
}

// Logger gets what nobody else can be told; slog.Default unless set. Never keys or bodies.
func Logger(l *slog.Logger) Option { return option(func(c *config) { c.logger = l }) }

func newConfig(opts []Option) (*config, error) {
	c := &config{first: 1, ahead: DefaultMaxAhead, limit: DefaultLimit, keep: DefaultKeep, number: fromHeader}
	for _, o := range opts {
		if o != nil {
			o.apply(c)
		}
	}
	if c.logger == nil {
		c.logger = slog.Default()
	}
	return c, errors.Join(c.faults()...)
}

func (c *config) faults() (faults []error) {
	if c.first < 0 || c.first > MaxNumber {
		faults = append(faults, invalid("sequence.First", c.first, fmt.Sprintf("0 to %d", MaxNumber)))
	}
	if c.limit < MinLimit || c.limit > MaxLimit {
		faults = append(faults, invalid("sequence.Limit", c.limit, fmt.Sprintf("%s to %s", MinLimit, MaxLimit)))
	}
	if c.policy != GapDead && c.policy != GapSkip {
		faults = append(faults, invalid("sequence.OnGap", int(c.policy), "GapDead or GapSkip"))
	}
	if c.ahead < 1 || c.ahead > MaxNumber {
		faults = append(faults, invalid("sequence.MaxAhead", c.ahead, fmt.Sprintf("1 to %d", MaxNumber)))
	}
	if least := 4 * c.limit; c.keep != 0 && (c.keep < least || c.keep > MaxKeep) {
		faults = append(faults, invalid("sequence.Keep", c.keep, fmt.Sprintf("%s to %s, or 0", least, MaxKeep)))
	}
	if c.number == nil {
		faults = append(faults, invalid("sequence.NumberOf", "nil", "a function"))
	}
	return faults
}

// call is how long what is queued behind an early message has, after its limit, before the gap counts: when no
// consumer ran for a while, the predecessor may be just there.
func (c *config) call() time.Duration {
	return min(max(c.limit/10, MinLimit), time.Minute)
}

func invalid(field string, value any, want string) error {
	return &zq.InvalidError{Field: field, Value: fmt.Sprint(value), Want: want}
}

// queueFault is what is wrong with a queue's name; the producer and the consumer check it in full.
func queueFault(queue string) error {
	if queue == "" || len(queue) > zq.MaxQueueName {
		return invalid("sequence queue", strconv.Quote(queue), fmt.Sprintf("1 to %d bytes", zq.MaxQueueName))
	}
	return nil
}
