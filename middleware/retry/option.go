package retry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Limits of options. A value outside gives a *zq.InvalidError that names the field, the value and the range.
const (
	mostAttempts = 1_000_000 // as zq.ConsumerConfig.MaxAttempts
	maxReason    = 64        // bytes, as zq.Dead keeps
)

// Decision is what becomes of a failed run's message.
type Decision struct {
	// Verdict is what the middleware returned asks the core to do.
	zq.Verdict
	// Err is what the handler returned.
	Err error
}

type rule struct {
	match  Match
	action Action
}

type policy struct {
	curve       Curve
	maxAttempts int           // 0: the consumer's alone
	maxAge      time.Duration // 0: no limit
	rules       []rule
	hook        func(context.Context, *zq.Delivery, Decision)
	logger      *slog.Logger
	faults      []error
}

// Option configures the middleware.
type Option interface{ apply(*policy) }

type option func(*policy)

func (f option) apply(p *policy) { f(p) }

// Backoff sets the curve for errors that no rule is for, DefaultCurve unless set.
func Backoff(c Curve) Option {
	return option(func(p *policy) {
		p.curve = c
		p.faults = append(p.faults, c.faults("retry.Backoff")...)
	})
}

// MaxAttempts is how many runs a message has before it is a dead letter: 1 to 1,000,000. The consumer's number
// (zq.Delivery.MaxAttempts) holds as well; it is the only one unless this is set.
func MaxAttempts(n int) Option {
	return option(func(p *policy) {
		if p.maxAttempts = n; n < 1 || n > mostAttempts {
			p.faults = append(p.faults, invalid("retry.MaxAttempts", n, fmt.Sprintf("1 to %d", mostAttempts)))
		}
	})
}

// MaxAge is how old a message may be when it runs again, counted from its first enqueue: 1 ms to zq.MaxDelay. One
// whose next run would come later is a dead letter at once. There is no limit unless set.
func MaxAge(d time.Duration) Option {
	return option(func(p *policy) {
		if p.maxAge = d; d < time.Millisecond || d > zq.MaxDelay {
			p.faults = append(p.faults, invalid("retry.MaxAge", d, fmt.Sprintf("%s to %s", time.Millisecond, zq.MaxDelay)))
		}
	})
}

// On adds a rule for a class of errors. Of several that match, the first given counts.
func On(m Match, a Action) Option {
	return option(func(p *policy) {
		field := fmt.Sprintf("retry.On[%d]", len(p.rules))
		p.rules = append(p.rules, rule{m, a})
		p.faults = append(p.faults, m.faults(field)...)
		p.faults = append(p.faults, a.faults(field)...)
	})
}

// OnRetry is told what is decided about each failed run, also when that is no retry, before it is recorded. What is
// left to the core, at shutdown or after the lease was lost, it is not told. It must be quick and safe for
// concurrent use; a panic is caught and logged once.
func OnRetry(f func(ctx context.Context, d *zq.Delivery, dec Decision)) Option {
	return option(func(p *policy) { p.hook = f })
}

// Logger gets what nobody else can be told; slog.Default unless set. Never bodies, keys or headers.
func Logger(l *slog.Logger) Option { return option(func(p *policy) { p.logger = l }) }

func newPolicy(opts []Option) (*policy, error) {
	p := &policy{curve: DefaultCurve()}
	for _, o := range opts {
		if o != nil {
			o.apply(p)
		}
	}
	if p.logger == nil {
		p.logger = slog.Default()
	}
	return p, errors.Join(p.faults...)
}
