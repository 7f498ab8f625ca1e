package deadletter

import (
	"context"
	"errors"
	"fmt"

	"github.com/cenkalti/backoff/v4"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Reasons of dead letters, the core's and those of the packages beside this one. Classify and zq.Dead take any other.
const (
	ReasonAttempts  = zq.ReasonAttempts  // failed as often as MaxAttempts allows
	ReasonDecode    = zq.ReasonDecode    // body does not fit its kind or content type
	ReasonNoHandler = zq.ReasonNoHandler // no handler for its kind
	ReasonLost      = zq.ReasonLost      // its workers died
	ReasonKey       = zq.ReasonKey       // an earlier message of its key died
	ReasonEnvelope  = zq.ReasonEnvelope  // its stored envelope is gone or unreadable
	ReasonLane      = zq.ReasonLane      // its key's lane was overwritten
	ReasonPermanent = "permanent"        // the handler said that to try again is no use: backoff.Permanent
	ReasonAge       = "age"              // too old to be tried again
	ReasonGap       = "gap"              // a numbered message before it is missing
	ReasonTimeout   = "timeout"          // with ByCause: out of attempts, the last one ran too long
	ReasonPanic     = "panic"            // with ByCause: out of attempts, the last one panicked
)

// MaxReason bounds a reason, in bytes.
const MaxReason = 64

// ByCause is a function for Classify: a message that ran out of attempts gets the reason of its last error, where
// that is a timeout or a panic. Other reasons stay.
func ByCause(err error, reason string) string {
	if reason != ReasonAttempts {
		return reason
	}
	var panicked *zq.PanicError
	switch {
	case errors.As(err, &panicked):
		return ReasonPanic
	case errors.Is(err, zq.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return ReasonTimeout
	}
	return reason
}

// verdict is why a message dies, and with which error.
type verdict struct {
	reason string
	err    error // as it came
	said   error // what the application said, without the library's word around it; may be nil
}

// judge decides as the core does, whether a run ends its message. cause is why its context ended, nil if it did not.
func judge(d *zq.Delivery, err, cause error) (v verdict, dies bool) {
	if err == nil || errors.Is(cause, zq.ErrLeaseLost) || errors.Is(cause, zq.ErrCancelled) {
		return v, false // done, or somebody else's to decide
	}
	e := zq.Explain(err)
	if e.Action == zq.ActionDead {
		return verdict{reason: e.Reason, err: err, said: said(err, e)}, true
	}
	if e.Action != zq.ActionRetry || errors.Is(cause, zq.ErrShutdown) && passesOn(err, cause) {
		return v, false
	}
	var permanent *backoff.PermanentError
	if !e.Asked && errors.As(err, &permanent) {
		return verdict{reason: ReasonPermanent, err: err, said: err}, true
	}
	if d.MaxAttempts <= 0 || d.Attempt < d.MaxAttempts {
		return v, false
	}
	v = verdict{reason: ReasonAttempts, err: err, said: said(err, e)}
	if errors.Is(cause, zq.ErrTimeout) && passesOn(err, cause) && !errors.Is(err, zq.ErrTimeout) {
		v.err = fmt.Errorf("%w: %w", zq.ErrTimeout, err)
		v.said = v.err
	}
	return v, true
}

// passesOn tells whether err says no more than that the context ended. A handler's own error beats that.
func passesOn(err, cause error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, cause)
}

// said takes off the word that zq.Dead or zq.RetryAfter put around an error, so that it is not stored twice.
func said(err error, e zq.Verdict) error {
	word := "dead: " + e.Reason
	if e.Action == zq.ActionRetry {
		if !e.Asked {
			return err
		}
		word = "retry after " + e.After.String()
	}
	whole, ok := textOf(err)
	if !ok {
		return err
	}
	inner := errors.Unwrap(err)
	if inner == nil && whole == word {
		return nil
	}
	if text, ok := textOf(inner); ok && whole == word+": "+text {
		return inner
	}
	return err
}

// textOf is an error's text; false without an error, or if its Error method panics.
func textOf(err error) (text string, ok bool) {
	if err == nil {
		return "", false
	}
	defer func() {
		if recover() != nil {
			text, ok = fmt.Sprintf("%T, whose Error method panics", err), false
		}
	}()
	return err.Error(), true
}
