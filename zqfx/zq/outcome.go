package zq

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
	"unicode"
)

// Reasons of dead letters that the library gives; Dead takes any other.
const (
	ReasonAttempts  = "attempts"   // failed as often as MaxAttempts allows
	ReasonDecode    = "decode"     // body does not fit its kind or content type
	ReasonNoHandler = "no_handler" // no handler for its kind
	ReasonLost      = "lost"       // its workers died, MaxLosses times
	ReasonKey       = "key"        // an earlier message of its key died, and the policy is DeadLetterKey
	ReasonEnvelope  = "envelope"   // its stored envelope is gone or unreadable
	ReasonLane      = "lane"       // its key's lane was overwritten by something else
)

type retryAfterError struct {
	after time.Duration
	err   error
}

func (e *retryAfterError) Error() string { return fmt.Sprintf("retry after %s: %v", e.after, e.err) }
func (e *retryAfterError) Unwrap() error { return e.err }

// RetryAfter asks to run the message again after d, instead of what the retry policy says. The attempt
// counts, so MaxAttempts still holds. d is bounded to [0, MaxDelay].
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		err = errors.New("retry asked for")
	}
	return &retryAfterError{after: bounded(d), err: err}
}

type postponeError struct {
	after time.Duration
	aside bool
}

func (e *postponeError) Error() string { return fmt.Sprintf("postponed for %s", e.after) }

// Postpone puts the message off by d without charging an attempt: what it waits for is not there yet. Its
// key, if it has one, waits with it. d is bounded to [0, MaxDelay].
func Postpone(d time.Duration) error { return &postponeError{after: bounded(d)} }

// StepAside puts the message off like Postpone, but those behind it in its key do not wait: they may pass it. It
// is for what cannot run before something that may be behind it.
func StepAside(d time.Duration) error { return &postponeError{after: bounded(d), aside: true} }

type deadError struct {
	reason string
	err    error
}

func (e *deadError) Error() string {
	if e.err == nil {
		return "dead: " + e.reason
	}
	return fmt.Sprintf("dead: %s: %v", e.reason, e.err)
}
func (e *deadError) Unwrap() error { return e.err }

// Dead sends the message to the dead letters at once. reason is a short word to filter by, kept to 64 bytes
// without control characters; err may be nil.
func Dead(reason string, err error) error {
	return &deadError{reason: word(clip(reason, 64)), err: err}
}

// word drops control characters: a dead letter's story has NUL between its fields.
func word(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
}

func bounded(d time.Duration) time.Duration { return min(max(d, 0), MaxDelay) }

// verdict is what the core does with a delivery.
type verdict int

const (
	ack     verdict = iota
	retry           // charged, after a delay
	wait            // uncharged, after a delay
	aside           // the same, and its key goes on
	release         // uncharged, at once: it did not have its chance
	bury
	drop // nothing to record: the lease is gone
)

type decision struct {
	verdict verdict
	delay   time.Duration
	reason  string
	err     error
	trace   string // what the run left behind
}

// judge is decide, safe from what the application brought along and panics here: methods of an error, the
// retry policy. That counts as a failure like any other.
func judge(d *Delivery, err, cause error, r rules) (dec decision) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		err = fmt.Errorf("%s; deciding on it: %w", errorText(err, maxRetryText), &PanicError{Value: v, Stack: debug.Stack()})
		if dec = (decision{verdict: bury, reason: ReasonAttempts, err: err}); d.Attempt < r.maxAttempts {
			dec = decision{verdict: retry, delay: DefaultRetryDelay(d, nil), err: err}
		}
	}()
	return decide(d, err, cause, r)
}

// decide reads a handler's result. cause is why its context ended, nil if it did not.
func decide(d *Delivery, err error, cause error, r rules) decision {
	if err == nil {
		return decision{verdict: ack}
	}
	if errors.Is(cause, ErrLeaseLost) {
		return decision{verdict: drop, err: err}
	}
	if errors.Is(cause, ErrTimeout) && contextual(err, cause) {
		err = fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	switch v := Explain(err); {
	case v.Action == ActionDead:
		return decision{verdict: bury, reason: v.Reason, err: err}
	case v.Action == ActionPostpone && v.Aside:
		return decision{verdict: aside, delay: v.After, err: err}
	case v.Action == ActionPostpone:
		return decision{verdict: wait, delay: v.After, err: err}
	case errors.Is(cause, ErrShutdown) && contextual(err, cause):
		return decision{verdict: release, err: err}
	case d.Attempt >= r.maxAttempts:
		return decision{verdict: bury, reason: ReasonAttempts, err: err}
	case v.Asked:
		return decision{verdict: retry, delay: v.After, err: err}
	}
	return decision{verdict: retry, delay: bounded(r.delay(d, err)), err: err}
}

// contextual tells whether err only passes on that the context ended. A handler's own error beats that.
func contextual(err, cause error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, cause)
}

// told is what a handler said, without the library's own word around it.
func told(err error) error {
	switch e := err.(type) { //nolint:errorlint // only the outermost: what a handler wrapped around it is its text
	case *deadError:
		return e.err
	case *retryAfterError:
		return e.err
	}
	return err
}

// errorText is an error as it is stored: clipped, and safe from an Error method that panics.
func errorText(err error, most int) (text string) {
	if err = told(err); err == nil {
		return ""
	}
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprintf("%T, whose Error method panics", err)
		}
	}()
	return clip(err.Error(), most)
}
