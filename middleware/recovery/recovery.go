package recovery

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// New makes the middleware. It lists all that is wrong with its options, and does no I/O. What it makes is safe for
// concurrent use and can wrap any number of handlers.
func New(opts ...Option) (zq.Middleware, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	g := &guard{config: c}
	return func(next zq.Handler) zq.Handler {
		return zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error { return g.run(ctx, d, next) })
	}, nil
}

type guard struct {
	*config
	once sync.Once // for the hook's panic
}

// run calls next. Its result is a panic's until next has returned: under GODEBUG=panicnil=1 recover cannot tell a
// panic(nil) from none, and the message must not be acked then.
func (g *guard) run(ctx context.Context, d *zq.Delivery, next zq.Handler) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			err = g.caught(ctx, d, &zq.PanicError{Value: v, Stack: debug.Stack()})
		}
	}()
	err = &zq.PanicError{Value: "panic(nil)"}
	result := next.Handle(ctx, d)
	returned = true
	return result
}

// caught decides about a panic.
func (g *guard) caught(ctx context.Context, d *zq.Delivery, p *zq.PanicError) error {
	if g.hook != nil {
		g.tell(ctx, d, p)
	}
	if g.reason == "" || cutOff(p, context.Cause(ctx)) {
		return p
	}
	return zq.Dead(g.reason, p)
}

// tell tells the hook, whose panic changes nothing.
func (g *guard) tell(ctx context.Context, d *zq.Delivery, p *zq.PanicError) {
	defer func() {
		if v := recover(); v != nil {
			g.once.Do(func() {
				g.logger.ErrorContext(ctx, "recovery: OnPanic panicked; told once", "queue", d.Queue, "panic", fmt.Sprint(v))
			})
		}
	}()
	g.hook(ctx, d, p)
}

// cutOff tells whether the handler panicked only because it was cut off by a shutdown, or by the loss of its lease.
func cutOff(p *zq.PanicError, cause error) bool {
	if !errors.Is(cause, zq.ErrShutdown) && !errors.Is(cause, zq.ErrLeaseLost) {
		return false
	}
	defer func() { _ = recover() }() // a method of the error that it panicked with: that is a panic of its own
	return errors.Is(p, context.Canceled) || errors.Is(p, context.DeadlineExceeded) || errors.Is(p, cause)
}
