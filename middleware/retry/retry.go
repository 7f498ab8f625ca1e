package retry

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Reasons of the dead letters that this package makes, beside zq.ReasonAttempts and those of ToDead.
const (
	ReasonPermanent = "permanent" // the handler said backoff.Permanent
	ReasonAge       = "age"       // its next run would come after MaxAge
)

// New makes the middleware. It lists all that is wrong with its options, and does no I/O. What it makes is safe for
// concurrent use and can wrap any number of handlers.
func New(opts ...Option) (zq.Middleware, error) {
	p, err := newPolicy(opts)
	if err != nil {
		return nil, err
	}
	var once sync.Once
	return func(next zq.Handler) zq.Handler {
		return zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
			err := next.Handle(ctx, d)
			if err == nil {
				return nil
			}
			return p.conclude(ctx, d, err, &once)
		})
	}, nil
}

// conclude decides, and tells the hook.
func (p *policy) conclude(ctx context.Context, d *zq.Delivery, err error, once *sync.Once) error {
	mine, out := p.judge(d, err, context.Cause(ctx))
	if mine && p.hook != nil {
		p.tell(ctx, d, out, err, once)
	}
	return out
}

// tell tells the hook, whose panic changes nothing.
func (p *policy) tell(ctx context.Context, d *zq.Delivery, out, err error, once *sync.Once) {
	defer func() {
		if v := recover(); v != nil {
			once.Do(func() {
				p.logger.ErrorContext(ctx, "retry: OnRetry panicked; told once", "queue", d.Queue, "panic", fmt.Sprint(v))
			})
		}
	}()
	p.hook(ctx, d, Decision{Verdict: zq.Explain(out), Err: err})
}

// judge is decide, safe from what the application brought along and panics here: a matcher, methods of an error.
// What they would have said is unknown, so the curve decides. Of the error only the text is passed on then: whoever
// looked into it next would panic too.
func (p *policy) judge(d *zq.Delivery, err, cause error) (mine bool, out error) {
	defer func() {
		if v := recover(); v != nil {
			pe := &zq.PanicError{Value: fmt.Sprint(v), Stack: debug.Stack()}
			mine, out = true, p.byCurve(d, fmt.Errorf("%s; deciding on it: %w", textOf(err), pe), p.curve, 0)
		}
	}()
	return p.decide(d, err, cause)
}

// decide reads a handler's error. cause is why its context ended, nil if it did not. What is not mine is the core's.
func (p *policy) decide(d *zq.Delivery, err, cause error) (mine bool, out error) {
	if errors.Is(cause, zq.ErrLeaseLost) {
		return false, err // nothing that is decided now can be recorded
	}
	v := zq.Explain(err)
	if v.Action == zq.ActionDead {
		return true, err
	}
	if errors.Is(cause, zq.ErrShutdown) && passesOn(err, cause) {
		return false, err
	}
	if permanent, ok := errors.AsType[*backoff.PermanentError](err); ok && permanent != nil {
		return true, zq.Dead(ReasonPermanent, err)
	}
	switch {
	case v.Action == zq.ActionPostpone:
		return true, err
	case v.Asked:
		return true, p.allowed(d, err, v.After, 0, err)
	}
	for _, r := range p.rules {
		if r.match.fits(err) {
			return true, r.action.act(p, d, err)
		}
	}
	return true, p.byCurve(d, err, p.curve, 0)
}

// passesOn tells whether err only says that the context has ended, in the words of the core. A handler's own error
// beats that.
func passesOn(err, cause error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, cause)
}

func (p *policy) byCurve(d *zq.Delivery, err error, c Curve, maxAttempts int) error {
	return p.again(d, err, c.Delay(d.ID, d.Attempt), maxAttempts)
}

func (p *policy) again(d *zq.Delivery, err error, delay time.Duration, maxAttempts int) error {
	return p.allowed(d, err, delay, maxAttempts, zq.RetryAfter(delay, err))
}

// allowed is the retry, or a dead letter if one of the limits is reached.
func (p *policy) allowed(d *zq.Delivery, err error, delay time.Duration, maxAttempts int, retry error) error {
	for _, limit := range [...]int{maxAttempts, p.maxAttempts, d.MaxAttempts} {
		if limit > 0 && d.Attempt >= limit {
			return zq.Dead(zq.ReasonAttempts, err)
		}
	}
	if p.tooOld(d, delay) {
		return zq.Dead(ReasonAge, err)
	}
	return retry
}

// tooOld tells whether the next run would come after MaxAge. Both times are the server's.
func (p *policy) tooOld(d *zq.Delivery, delay time.Duration) bool {
	if p.maxAge == 0 || d.EnqueuedAt.IsZero() || d.ClaimedAt.IsZero() {
		return false
	}
	age := max(d.ClaimedAt.Sub(d.EnqueuedAt), 0) // the server's clock may have gone back
	return delay > p.maxAge-age
}

// textOf is an error's text, safe from an Error method that panics.
func textOf(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("%T, whose Error method panics", err)
		}
	}()
	return err.Error()
}
