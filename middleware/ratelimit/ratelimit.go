package ratelimit

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// New makes the middleware. It lists all that is wrong with its arguments, as *zq.InvalidError, and does no I/O. The
// middleware is safe for concurrent use. Several queues may share it; their rates are apart unless By joins them.
func New(l Limiter, opts ...Option) (zq.Middleware, error) {
	c, err := newConfig(l, opts)
	if err != nil {
		return nil, err
	}
	g := &gate{config: c, limiter: l, outage: outage{now: time.Now, tell: c.tell, logger: c.logger}}
	return func(next zq.Handler) zq.Handler {
		return zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
			if err := g.wait(ctx, d); err != nil {
				return err
			}
			return next.Handle(ctx, d)
		})
	}, nil
}

// gate is the middleware of one New.
type gate struct {
	*config
	limiter Limiter
	outage  outage
}

// wait is nil if the message may run, and else what puts it off.
func (g *gate) wait(ctx context.Context, d *zq.Delivery) error {
	name, err := g.named(d)
	if name == "" || err != nil {
		return err
	}
	if !g.outage.ask() {
		return g.unasked()
	}
	wait, err := g.reserve(ctx, name, d.Queue+"\x00"+d.ID)
	switch {
	case err != nil && ctx.Err() != nil:
		g.outage.unknown()
		return context.Cause(ctx) // the run is over, and that says nothing about the limiter
	case err != nil:
		g.outage.failed(err, g.closed)
		return g.unasked()
	}
	g.outage.answered()
	if wait > 0 {
		return zq.Postpone(wait)
	}
	return nil
}

// named is the name of a message's rate. A panic becomes an error, so that the layers outside see a failed run.
func (g *gate) named(d *zq.Delivery) (name string, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &zq.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return g.name(d), nil
}

// unasked is what happens to a message while the limiter is out of reach.
func (g *gate) unasked() error {
	pause := g.outage.pass()
	if g.closed {
		return zq.Postpone(pause)
	}
	return nil
}

// reserve asks the limiter, and makes a panic of it an error.
func (g *gate) reserve(ctx context.Context, name, id string) (wait time.Duration, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("ratelimit: the limiter panicked: %v", v)
		}
	}()
	ctx, cancel := g.question(ctx)
	defer cancel()
	return g.limiter.Reserve(ctx, name, id)
}
