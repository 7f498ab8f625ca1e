package zqfxtest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// App is an application under test. Call its methods from the goroutine of the test.
type App struct {
	*fxtest.App
	*state
	instance string
}

// state is what the views of one application share.
type state struct {
	tb       testing.TB
	rdb      redis.UniversalClient
	embedded *zqtest.EmbeddedRedis // nil on a real Redis
	parts    map[string]parts      // by instance
	started  atomic.Bool           // all hooks of the start have run, and none of the stop
}

// New builds an application, and fails the test if that does not work. It is not started: see RequireStart and
// WorkOne.
func New(t testing.TB, opts ...fx.Option) *App {
	t.Helper()
	s := &state{tb: t, parts: make(map[string]parts)}
	all := append([]fx.Option{
		fx.Provide(fx.Annotate(s.open, fx.ParamTags(`optional:"true"`), fx.ResultTags(clientName))),
		gather(""),
	}, opts...)
	// Last, so that its hooks come after all others of the start, and before all others of the stop.
	all = append(all, fx.Invoke(fx.Annotate(s.take, fx.ParamTags("", clientName, partsGroup))))
	return &App{App: fxtest.New(t, all...), state: s}
}

// Validate fails the test if the application lacks a dependency or declares a handler that does not fit. Nothing
// is constructed, and no Redis is needed. What shows only when constructors run, such as two handlers of one
// kind, is told by New.
func Validate(t testing.TB, opts ...fx.Option) {
	t.Helper()
	if err := fx.ValidateApp(append([]fx.Option{fx.NopLogger}, opts...)...); err != nil {
		t.Fatalf("the application is not valid: %v", err)
	}
}

// Instance is the same application as its instance of that name sees it; the name must have been given to
// WithInstance.
func (a *App) Instance(name string) *App {
	a.tb.Helper()
	if _, ok := a.parts[name]; !ok {
		a.tb.Fatalf("zqfxtest: no instance %q: give it to New with WithInstance", name)
	}
	return &App{App: a.App, state: a.state, instance: name}
}

// RequireStart starts the application, and fails the test if that does not work. It stops with the test, if
// RequireStop does not come before.
func (a *App) RequireStart() *App {
	a.tb.Helper()
	a.App.RequireStart()
	a.tb.Cleanup(a.RequireStop)
	return a
}

// RequireStop stops the application, and fails the test if that does not work in good order. One that is not
// started is left alone.
func (a *App) RequireStop() {
	a.tb.Helper()
	if a.started.Load() {
		a.App.RequireStop()
	}
}

// Redis is the client that the application works with.
func (a *App) Redis() redis.UniversalClient { return a.rdb }

// Producer is the producer of a declared queue.
func (a *App) Producer(queue string) *zq.Producer {
	a.tb.Helper()
	p, err := a.producers().For(queue)
	if err != nil {
		a.tb.Fatal(err)
	}
	return p
}

// Inspector is the inspector of a declared queue.
func (a *App) Inspector(queue string) *zq.Inspector {
	a.tb.Helper()
	i, err := a.producers().Inspector(queue)
	if err != nil {
		a.tb.Fatal(err)
	}
	return i
}

// Health says whether the application is ready.
func (a *App) Health() *zqfx.Health {
	a.tb.Helper()
	a.producers() // there with it, or neither is
	return a.parts[a.instance].health
}

// Advance moves the clock of the embedded Redis: what is delayed comes due. From the first call on that clock
// stands still otherwise. On a real Redis the test fails.
func (a *App) Advance(d time.Duration) {
	a.tb.Helper()
	if a.embedded == nil {
		a.tb.Fatal("zqfxtest: the clock of a real Redis cannot be moved")
	}
	a.embedded.Advance(d)
}

// Drain waits until no work is left in the queues that the application consumes: nothing waits, is delayed or runs.
// Dead letters are not work, and what was sent to queues of other services is theirs. It returns an error when ctx
// ends first, and at once when nobody works on what is left: the application is not started, or consumes nothing.
func (a *App) Drain(ctx context.Context) error {
	a.tb.Helper()
	w := a.parts[a.instance].worker
	if w == nil || len(w.Queues()) == 0 {
		return errors.New("zqfxtest: Drain of an application that consumes nothing")
	}
	look := func(ctx context.Context) (sight, error) { return lookAt(ctx, a.producers(), w.Queues()) }
	return drain(ctx, look, a.started.Load)
}

func (a *App) producers() *zqfx.Producers {
	a.tb.Helper()
	p := a.parts[a.instance].producers
	if p == nil {
		a.tb.Fatal("zqfxtest: the application has no zqfx.Module for this instance")
	}
	return p
}
