package logging

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// textPanic is all that is said about a panic that passes by: whoever recovers it has the value and the stack.
const textPanic = "panicked, or ended its goroutine"

// run is how a run ended.
type run struct {
	attempt, maxAttempts int

	err   error
	cause error // why its context has ended, nil if it has not
	whole bool  // it returned; otherwise it panicked or ended its goroutine
}

// outcome is what the core does with it.
type outcome struct {
	action zq.Action
	reason string
	delay  time.Duration
	asked  bool
}

// outcome follows the rules of the core. An error that panics when it is looked into counts as a plain one, there
// as here.
func (r run) outcome() (o outcome) {
	defer func() {
		if recover() != nil {
			o = r.failed()
		}
	}()
	switch {
	case errors.Is(r.cause, zq.ErrLeaseLost): // whatever it returned, it cannot be recorded
		return outcome{action: zq.ActionDrop}
	case !r.whole:
		return r.failed()
	}
	switch v := zq.Explain(r.err); {
	case v.Action == zq.ActionAck, v.Action == zq.ActionPostpone, v.Action == zq.ActionDead:
		return outcome{action: v.Action, reason: v.Reason, delay: v.After, asked: v.Asked}
	case errors.Is(r.cause, zq.ErrShutdown) && r.passesOn():
		return outcome{action: zq.ActionRelease}
	default:
		if o = r.failed(); o.action == zq.ActionRetry {
			o.delay, o.asked = v.After, v.Asked
		}
		return o
	}
}

// failed is a retry, or a dead letter on the consumer's last attempt.
func (r run) failed() outcome {
	if r.maxAttempts > 0 && r.attempt >= r.maxAttempts {
		return outcome{action: zq.ActionDead, reason: zq.ReasonAttempts}
	}
	return outcome{action: zq.ActionRetry}
}

// passesOn tells whether the error only says that the context has ended.
func (r run) passesOn() bool {
	return errors.Is(r.err, context.Canceled) || errors.Is(r.err, context.DeadlineExceeded) || errors.Is(r.err, r.cause)
}

// text is the error's text, "" for none.
func (r run) text() (text string) {
	switch {
	case !r.whole:
		return textPanic
	case r.err == nil:
		return ""
	}
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("%T, whose Error method panics", r.err)
		}
	}()
	return clip(r.err.Error(), MaxError)
}

// stack is where the handler panicked, "" if it did not.
func (r run) stack() (text string) {
	defer func() {
		if recover() != nil {
			text = ""
		}
	}()
	if p, ok := errors.AsType[*zq.PanicError](r.err); ok {
		return clip(string(p.Stack), MaxStack)
	}
	return ""
}

// clip cuts a text to at most this many bytes, between characters, in a copy that does not hold on to the rest.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const mark = "…"
	end := most - len(mark)
	for i := 1; i < utf8.UTFMax && !utf8.RuneStart(s[end]); i++ {
		end--
	}
	return strings.Clone(s[:end]) + mark
}
