package middleware

import (
	"time"

	"github.com/zqueue/zqueue/middleware/deadletter"
	"github.com/zqueue/zqueue/middleware/recovery"
	"github.com/zqueue/zqueue/middleware/retry"
	"github.com/zqueue/zqueue/middleware/timeout"
)

// Recovery turns panics of the layers inside it into errors, as recovery.New. It stands outside all others, for what
// panics in the chain itself.
func Recovery(opts ...recovery.Option) Layer { return recoveryLayer(RoleRecovery, opts) }

// InnerRecovery turns panics of the handler into errors, as recovery.New. It stands next to the handler, so that
// all others see an error.
func InnerRecovery(opts ...recovery.Option) Layer { return recoveryLayer(RoleInnerRecovery, opts) }

func recoveryLayer(r Role, opts []recovery.Option) Layer {
	return Layer{role: r, build: func(at *site) (part, error) {
		mw, err := recovery.New(append([]recovery.Option{recovery.Logger(at.Logger)}, opts...)...)
		return part{mw: mw}, err
	}}
}

// DeadLetter looks after messages that will not run again, as deadletter.New.
func DeadLetter(opts ...deadletter.Option) Layer {
	return Layer{role: RoleDeadLetter, build: func(at *site) (part, error) {
		mw, err := deadletter.New(append([]deadletter.Option{deadletter.Logger(at.Logger)}, opts...)...)
		return part{mw: mw}, err
	}}
}

// Retry decides when a failed message runs again, as retry.New.
func Retry(opts ...retry.Option) Layer {
	return Layer{role: RoleRetry, build: func(at *site) (part, error) {
		mw, err := retry.New(append([]retry.Option{retry.Logger(at.Logger)}, opts...)...)
		return part{mw: mw}, err
	}}
}

// Timeout bounds each run, as timeout.New. It is not in a standard plan unless given.
func Timeout(limit time.Duration, opts ...timeout.Option) Layer {
	return Layer{role: RoleTimeout, build: func(*site) (part, error) {
		mw, err := timeout.New(limit, opts...)
		return part{mw: mw}, err
	}}
}
