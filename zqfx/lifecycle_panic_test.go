package zqfx_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/middleware"
	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// angry is a chain all of whose parts panic: its layer and the retry delay at first, observers and Close always.
type angry struct{}

// Build gives the chain.
func (angry) Build(middleware.Env) (middleware.Stack, error) {
	layer := func(next zq.Handler) zq.Handler {
		return zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
			if d.Attempt == 1 {
				panic("layer")
			}
			return next.Handle(ctx, d)
		})
	}
	return middleware.Stack{
		Chain: zq.Chain{layer}, Names: []string{"angry"},
		Observers: []zq.Observer{{
			Claimed: func(zq.Claimed) { panic("claimed") },
			Settled: func(zq.Settled) { panic("settled") },
			Decided: func(*zq.Delivery, zq.Decision) { panic(noValue()) },
			Lost:    func(zq.Lost) { panic("lost") },
			Failed:  func(string, error) { panic("failed") },
		}},
		Close: func(context.Context) error { panic("no close") },
	}, nil
}

// noValue is what a callback may panic with as well.
func noValue() any { return nil }

// B49: a panic in any callback of an application hurts nobody else: messages run, the stop goes on to the end.
func TestB49PanicInCallbacks(t *testing.T) {
	t.Parallel()
	server, queue := zqtest.Redis(t), zqtest.Queue(t)
	run, ran := reporting()
	closed := make(chan struct{}, 1)
	var h *zqfx.Health
	var p *zqfx.Producers
	app, log := begun(t, client(server.Client()), zqfx.Chain(angry{}), zqfx.Module(), fx.Populate(&h, &p),
		zqfx.Queue(queue, zqfx.Lease(time.Second), zqfx.RetryDelay(func(d *zq.Delivery, _ error) time.Duration {
			if d.ID == "o-2" {
				panic("delay")
			}
			return time.Millisecond
		})),
		zqfx.Handle(queue, Placed, func(lc fx.Lifecycle) typedRun {
			lc.Append(fx.StopHook(func() { closed <- struct{}{} }))
			return run
		}))
	for _, id := range []string{"o-1", "o-2"} {
		send(t, p, queue, id, zq.WithID(id))
		want(t, ran, id)
	}
	server.Pause() // for Failed
	zqtest.Eventually(t, limit, func() bool { return h.Check(t.Context()) != nil }, "calls fail")
	server.Resume()
	send(t, p, queue, "o-3", zq.WithID("o-3"))
	want(t, ran, "o-3")
	err := zqtest.Wait(t, stopping(app, limit), limit)
	if err == nil {
		t.Fatal("Close panicked, and the stop does not say so")
	}
	mentions(t, err.Error(), "Close panicked: no close", queue)
	zqtest.Wait(t, closed, limit)
	log.says(t, "an observer panics")
}
