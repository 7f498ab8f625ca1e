package zqfx

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"

	"go.uber.org/fx"
)

// ExitFatal is the exit code of an application that shuts itself down because a consumer ended. fx.App.Run exits
// with it; a main of your own finds it in the signal that fx.App.Wait gives, and not in that of Done.
const ExitFatal = 70

// FatalPolicy says what happens when a consumer ends by itself, which it does when going on would do harm: a
// newer library has written to its queue, say. Make one with FatalShutdown, FatalDegrade or FatalFunc.
type FatalPolicy struct {
	word string
	fn   func(queue string, err error)
}

// FatalShutdown ends the application with ExitFatal. It is the default.
func FatalShutdown() FatalPolicy { return FatalPolicy{word: onFatalShutdown} }

// FatalDegrade goes on with the other queues; Health says so.
func FatalDegrade() FatalPolicy { return FatalPolicy{word: onFatalDegrade} }

// FatalFunc calls fn, once for each consumer that ends; err says why it did. fn must return, for the application
// does not stop before it has, or before its time is over.
func FatalFunc(fn func(queue string, err error)) FatalPolicy {
	return FatalPolicy{word: "func", fn: fn}
}

// OnFatal sets what happens when a consumer ends by itself; it comes before Config.OnFatal.
func OnFatal(p FatalPolicy) ModuleOption { return onFatal(p) }

type onFatal FatalPolicy

func (p onFatal) applyModule(m *module) {
	policy := FatalPolicy(p)
	m.onFatal = &policy
}

// fatal carries the policy out.
type fatal struct {
	policy     FatalPolicy
	shutdowner fx.Shutdowner
	log        *slog.Logger
	asked      atomic.Bool // the application was asked to end
}

func newFatal(m *module, c Config, log *slog.Logger) *fatal {
	f := &fatal{policy: FatalPolicy{word: c.OnFatal}, log: log}
	if m.onFatal != nil {
		f.policy = *m.onFatal
	}
	if f.policy.word == "" {
		f.policy = FatalShutdown()
	}
	return f
}

// ended is called when a consumer has ended by itself.
func (f *fatal) ended(queue string, err error) {
	f.log.Error("zqfx: a consumer has ended", "queue", queue, "policy", f.policy.word, "error", err)
	switch {
	case f.policy.fn != nil:
		if err := guard("OnFatal", func() error { f.policy.fn(queue, err); return nil }); err != nil {
			f.log.Error("zqfx: OnFatal failed", "queue", queue, "error", err)
		}
	case f.policy.word != onFatalDegrade && f.asked.CompareAndSwap(false, true):
		// It fails when somebody else is shutting down already.
		if err := f.shutdowner.Shutdown(fx.ExitCode(ExitFatal)); err != nil {
			f.log.Debug("zqfx: shutdown was under way", "error", err)
		}
	}
}

// guard makes a panic an error: fx does not do that for hooks.
func guard(what string, fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("zqfx: %s panicked: %v\n%s", what, p, debug.Stack())
		}
	}()
	return fn()
}
