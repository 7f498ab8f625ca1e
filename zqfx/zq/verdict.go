package zq

import (
	"errors"
	"time"
)

// Verdict is what an error of a handler asks for, as far as the error alone tells; a middleware that logs,
// counts or reroutes looks at it.
type Verdict struct {
	// Action is what the core does with the message.
	Action Action
	// After is the pause that was asked for, if Asked; else the retry policy chooses it.
	After time.Duration
	Asked bool
	// Aside says that the others of its key do not wait for it.
	Aside bool
	// Reason is a dead letter's.
	Reason string
}

// Action is what becomes of a message after a run.
type Action string

// Actions. A plain error is ActionRetry; the core makes it a dead letter when Delivery.Attempt has reached
// Delivery.MaxAttempts. Explain never gives ActionRelease and ActionDrop: they are the core's alone.
const (
	ActionAck      Action = "ack"
	ActionRetry    Action = "retry"
	ActionPostpone Action = "postpone"
	ActionDead     Action = "dead"
	ActionRelease  Action = "release" // given back uncharged, at the end of a drain
	ActionDrop     Action = "drop"    // nothing to record: the lease was lost
)

// Explain reads what a handler returned, wrapped errors included. Where several are joined, Dead comes before
// Postpone before RetryAfter.
func Explain(err error) Verdict {
	var (
		dead      *deadError
		postponed *postponeError
		after     *retryAfterError
	)
	switch {
	case err == nil:
		return Verdict{Action: ActionAck}
	case errors.As(err, &dead):
		return Verdict{Action: ActionDead, Reason: dead.reason}
	case errors.As(err, &postponed):
		return Verdict{Action: ActionPostpone, After: postponed.after, Asked: true, Aside: postponed.aside}
	case errors.As(err, &after):
		return Verdict{Action: ActionRetry, After: after.after, Asked: true}
	}
	return Verdict{Action: ActionRetry}
}
