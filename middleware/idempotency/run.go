package idempotency

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// ErrNoRun is SetResult's answer outside of a handler under this middleware.
var ErrNoRun = errors.New("idempotency: no run in this context")

// How a run's end is recorded: so many tries, within so long. Both are below the grace that a consumer gives a
// handler by default.
const (
	finishTries = 5
	finishFor   = 4 * time.Second
	failFor     = time.Second
)

// run is one run of the handler.
type run struct {
	mu     sync.Mutex
	result []byte
}

type runKey struct{}

func withRun(ctx context.Context, r *run) context.Context { return context.WithValue(ctx, runKey{}, r) }

// SetResult stores a result with the key if the handler ends well, for later duplicates (see OnDuplicate). It is
// copied; the last one counts. More than MaxResult bytes give a *zq.InvalidError. The result of a message without a
// business key goes nowhere. Safe for concurrent use.
func SetResult(ctx context.Context, result []byte) error {
	r, ok := ctx.Value(runKey{}).(*run)
	if !ok {
		return ErrNoRun
	}
	if err := resultFault(result); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result = bytes.Clone(result)
	return nil
}

// run runs the handler under its mark, and records the end of it, also of a panic or runtime.Goexit.
func (g *guard) run(ctx context.Context, d *zq.Delivery, next zq.Handler, c Claim) (err error) {
	r := &run{}
	inner, cancel := context.WithCancelCause(withRun(ctx, r))
	defer cancel(nil)
	m := &mark{claim: c, taken: cancel}
	g.heart.add(m)
	err = errors.New("the handler did not return")
	defer func() {
		end, away := g.judge(d, r, c, err, context.Cause(inner))
		g.finish(ctx, d, m, end)
		if away {
			err = zq.Postpone(g.cfg.busyLeast) // somebody else runs; what came of it is seen then
		}
	}()
	err = next.Handle(inner, d)
	return err
}

// judge reads how a run has ended; away says that it ended because its mark was taken over. An error whose methods
// panic counts as a failure: nothing may keep the mark from being ended.
func (g *guard) judge(d *zq.Delivery, r *run, c Claim, err, cause error) (end Ending, away bool) {
	defer func() {
		if recover() != nil {
			end = Ending{Name: c.Name, Owner: c.Owner, State: StateFailed, Keep: g.cfg.failed, Error: errorText(err)}
		}
	}()
	end = g.ending(d, r, c, err, cause)
	return end, err != nil && errors.Is(cause, ErrTaken) && contextual(err, cause)
}

// ending is what is to be recorded of a run: only what is charged as an attempt counts as a failure.
func (g *guard) ending(d *zq.Delivery, r *run, c Claim, err, cause error) Ending {
	e := Ending{Name: c.Name, Owner: c.Owner}
	verdict := zq.Explain(err)
	switch {
	case err == nil:
		r.mu.Lock()
		defer r.mu.Unlock()
		e.State, e.Keep, e.Result = StateDone, g.cfg.done, r.result
	case verdict.Action == zq.ActionDead:
		e.State, e.Keep, e.Error = StateFailed, g.cfg.failed, errorText(err)
	case verdict.Action != zq.ActionRetry, errors.Is(cause, zq.ErrLeaseLost), cause != nil && contextual(err, cause) &&
		!errors.Is(cause, zq.ErrTimeout):
	default:
		e.State, e.Keep, e.Error = StateFailed, g.cfg.failed, errorText(err)
		e.Held = g.cfg.onFailure == Hold && !last(d, err)
	}
	return e
}

// last says that the message will not run again.
func last(d *zq.Delivery, err error) bool {
	var permanent *backoff.PermanentError
	return errors.As(err, &permanent) || d.MaxAttempts > 0 && d.Attempt >= d.MaxAttempts
}

// contextual says that err only passes on that the context ended. A handler's own error beats that.
func contextual(err, cause error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, cause)
}

// finish records an ending, and tries a few times. It goes on after the end of ctx: what has run should be known.
func (g *guard) finish(ctx context.Context, d *zq.Delivery, m *mark, e Ending) {
	within := failFor
	if e.State == StateDone {
		within = finishFor
	}
	io, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	g.heart.remove(io, m)
	a := answered(g.ends.Join(io, e))
	for i, pause := 1, 25*time.Millisecond; i < finishTries && a.Err != nil && !permanent(a.Err); i, pause = i+1, 4*pause {
		if rest(io, pause/2+rand.N(pause/2)) != nil { //nolint:gosec // jitter, not a secret
			break
		}
		a = answered(g.ends.Join(io, e))
	}
	if a.Err == nil && !a.Granted {
		a.Err = ErrTaken
	}
	outcome := Ran
	if a.Err != nil {
		outcome = Unrecorded
	}
	if a.Err != nil && e.State == StateDone {
		g.cfg.hooks.logger.Warn("idempotency: a run that ended well is not recorded; a duplicate may run again",
			"queue", d.Queue, "id", d.ID, "error", a.Err)
	}
	g.cfg.hooks.told(ctx, d, outcome, ended(&e))
}

// rest waits for d, or returns the cause of ctx if that ends first.
func rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// errorText is an error as it is stored: clipped, and safe from an Error method that panics.
func errorText(err error) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprintf("%T, whose Error method panics", err)
		}
	}()
	if text = err.Error(); len(text) > maxError {
		text = text[:maxError]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
