package zqfx_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"
	"go.uber.org/goleak"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// F9: without a deadline nothing but the own budget ends a drain.
func TestF9StopWithoutDeadlineEnds(t *testing.T) {
	t.Parallel()
	rdb, queue := zqtest.Shared(t).Client(), zqtest.Queue(t)
	run, entered, _ := deaf(t)
	var p *zqfx.Producers
	app, log := begun(t, client(rdb), shutdownIn(400*time.Millisecond), zqfx.Module(),
		zqfx.Queue(queue, zqfx.DrainTime(time.Hour)), zqfx.HandleFunc(queue, Placed, run), fx.Populate(&p))
	log.says(t, "a shutdown ends before the queue's handlers had their time")
	send(t, p, queue, "o-1")
	want(t, entered, "o-1")
	err := zqtest.Wait(t, stopping(app, 0), limit)
	if drain := (*zq.DrainError)(nil); !errors.As(err, &drain) || drain.Running != 1 {
		t.Errorf("stop: %v, want a DrainError with 1 running", err)
	}
	if d := depthOf(t, rdb, queue); d.Pending != 1 || d.Claims != 0 {
		t.Errorf("the message was not given back: %+v", d)
	}
}

// The own budget leaves a handler that heeds its context the time to say so: its message is given back uncharged.
func TestF9BudgetHasRoomForWhoHeedsItsContext(t *testing.T) {
	t.Parallel()
	rdb, queue := zqtest.Shared(t).Client(), zqtest.Queue(t)
	run, entered, ended := heeding()
	var p *zqfx.Producers
	app, _ := begun(t, client(rdb), shutdownIn(2*time.Second), zqfx.Module(), zqfx.HandleFunc(queue, Placed, run),
		fx.Populate(&p))
	send(t, p, queue, "o-1", zq.WithID("o-1"))
	want(t, entered, "o-1")
	if err := zqtest.Wait(t, stopping(app, 0), limit); err != nil {
		t.Errorf("stop: %v", err)
	}
	want(t, ended, zq.ErrShutdown.Error())
	info, err := inspectorOf(t, rdb, queue).Message(t.Context(), "o-1")
	if err != nil || info.State != zq.StatePending || info.Attempts != 0 {
		t.Errorf("state %s after %d attempts, %v; want pending after none", info.State, info.Attempts, err)
	}
}

// closing is what a dependency saw when it was closed.
type closing struct {
	over error         // its context's error
	left time.Duration // until its deadline
}

// F10, B17: a handler that ignores its context does not use up the time of the hooks that come after.
func TestF10DrainLeavesTimeForOtherHooks(t *testing.T) {
	t.Parallel()
	rdb, queue := zqtest.Shared(t).Client(), zqtest.Queue(t)
	run, entered, _ := deaf(t)
	closed := make(chan closing, 1)
	var p *zqfx.Producers
	app, _ := begun(t, client(rdb), zqfx.Module(), zqfx.Handle(queue, Placed, func(lc fx.Lifecycle) typedRun {
		lc.Append(fx.StopHook(func(ctx context.Context) {
			deadline, _ := ctx.Deadline()
			closed <- closing{ctx.Err(), time.Until(deadline)}
		}))
		return run
	}), fx.Populate(&p))
	send(t, p, queue, "o-1")
	want(t, entered, "o-1")
	const whole = 4 * time.Second
	if err := zqtest.Wait(t, stopping(app, whole), limit); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stop: %v, want what the handler did, ahead of the deadline", err)
	}
	got := zqtest.Wait(t, closed, limit)
	if got.over != nil || got.left <= 0 || got.left > whole/2 {
		t.Errorf("its hook ran %v before the deadline, context %v", got.left, got.over)
	}
	if d := depthOf(t, rdb, queue); d.Pending != 1 || d.Claims != 0 {
		t.Errorf("the message was not given back: %+v", d)
	}
}

// typedRun is a handler function with a name of its own.
type typedRun func(context.Context, *zq.Delivery, OrderPlaced) error

// F11, B16: fx ends the start's context; consumers and their handlers go on.
func TestF11RunOutlivesStartContext(t *testing.T) {
	t.Parallel()
	queue := zqtest.Queue(t)
	over := make(chan error, 1)
	var p *zqfx.Producers
	app, _ := assembled(t, shared(t), zqfx.Module(), fx.Populate(&p),
		zqfx.HandleFunc(queue, Placed, func(ctx context.Context, _ *zq.Delivery, _ OrderPlaced) error {
			over <- ctx.Err()
			return nil
		}))
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	if err := app.Start(ctx); err != nil {
		t.Fatal(err)
	}
	cancel()
	send(t, p, queue, "o-1")
	if err := zqtest.Wait(t, over, limit); err != nil {
		t.Errorf("its context: %v", err)
	}
	stopped(t, app)
}

// B16: the start returns while handlers are at work, so that the hooks of others come next.
func TestB16StartReturnsAtOnce(t *testing.T) {
	t.Parallel()
	rdb, queue := zqtest.Shared(t).Client(), zqtest.Queue(t)
	producer, err := zq.NewProducer(rdb, queue)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Placed.Send(t.Context(), producer, OrderPlaced{ID: "o-1"}); err != nil {
		t.Fatal(err)
	}
	run, entered, letGo := deaf(t)
	next := make(chan struct{})
	app, _ := begun(t, client(rdb), zqfx.Module(), zqfx.HandleFunc(queue, Placed, run), fx.Invoke(func(lc fx.Lifecycle) {
		lc.Append(fx.StartHook(func() { close(next) }))
	}))
	zqtest.Wait(t, next, limit)
	want(t, entered, "o-1")
	letGo()
	stopped(t, app)
}

// F12, B17: what a handler depends on through its constructor is there until the drain is over, producers too; the
// ack of a message that ends in the drain is recorded.
func TestF12DependenciesCloseAfterDrain(t *testing.T) {
	t.Parallel()
	server, queue := zqtest.Shared(t), zqtest.Queue(t)
	type database struct{}
	events, entered, goOn := &chronicle{}, make(chan string, 1), make(chan struct{})
	var p *zqfx.Producers
	var h *zqfx.Health
	app, _ := begun(t, zqfx.Module(), fx.Decorate(func(c zqfx.Config) zqfx.Config { c.RedisURL = server.URL(); return c }),
		zqfx.Queue(queue), zqfx.Sender(queue+".next", Placed), fx.Populate(&p, &h),
		fx.Provide(func(lc fx.Lifecycle) *database {
			lc.Append(fx.StopHook(func() { events.add("database closed") }))
			return &database{}
		}),
		zqfx.Handle(queue, Placed, func(_ *database, next *zqfx.SenderOf[OrderPlaced]) typedRun {
			return func(ctx context.Context, _ *zq.Delivery, o OrderPlaced) error {
				entered <- o.ID
				<-goOn
				_, err := next.Send(ctx, o)
				events.add("handler done")
				return err
			}
		}))
	send(t, p, queue, "o-1", zq.WithID("o-1"))
	want(t, entered, "o-1")
	end := stopping(app, limit)
	zqtest.Eventually(t, limit, func() bool { return h.Check(t.Context()) != nil }, "it stops")
	close(goOn)
	if err := zqtest.Wait(t, end, limit); err != nil {
		t.Errorf("stop: %v", err)
	}
	if got := events.String(); got != "handler done, database closed" {
		t.Errorf("order: %s", got)
	}
	rdb := server.Client()
	if info, err := inspectorOf(t, rdb, queue).Message(t.Context(), "o-1"); err != nil || info.State != zq.StateDone {
		t.Errorf("it is %s: %v", info.State, err)
	}
	if d := depthOf(t, rdb, queue+".next"); d.Pending != 1 {
		t.Errorf("what it sent while draining: %+v", d)
	}
	if producer, err := p.For(queue); err == nil {
		if _, err = Placed.Send(t.Context(), producer, OrderPlaced{}); !errors.Is(err, zq.ErrClosed) {
			t.Errorf("send after the stop: %v", err)
		}
	}
}

// F13: one of two queues cannot start when the other is at work already. That one stops again and gives back what it
// has, fx rolls the hooks of others back in time, and no goroutine is left. It runs alone, for it counts them.
func TestF13FailedStartLeavesNothingRunning(t *testing.T) {
	direct, good, bad := zqtest.Shared(t).Client(), zqtest.Queue(t), zqtest.Queue(t)
	newerLayout(t, direct, bad)
	put(t, direct, good, "o-1")
	proxy := zqtest.Proxy(t, zqtest.Shared(t).Addr())
	before := goleak.IgnoreCurrent()
	late := proxy.HoldReply(zqtest.Command("HGET", "zq:{"+bad+"}:meta"))
	rdb := zqtest.Shared(t).Client(func(o *redis.Options) { o.Addr = proxy.Addr() })
	run, entered, _ := heeding()
	var rolledBack []error
	app, _ := assembled(t, client(rdb), zqfx.Module(), zqfx.HandleFunc(good, Placed, run), zqfx.HandleFunc(bad, Placed, run),
		fx.Decorate(func(c zqfx.Config, lc fx.Lifecycle) zqfx.Config { // the earliest there is
			lc.Append(fx.StopHook(func(ctx context.Context) { rolledBack = append(rolledBack, ctx.Err()) }))
			return c
		}))
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	started := make(chan error, 1)
	go func() { started <- app.Start(ctx) }() // ends with ctx
	want(t, entered, "o-1")
	late.Release()
	err := zqtest.Wait(t, started, limit)
	if !errors.Is(err, zq.ErrNewerLayout) {
		t.Fatalf("start: %v", err)
	}
	mentions(t, err.Error(), bad)
	if len(rolledBack) != 1 || rolledBack[0] != nil {
		t.Errorf("hooks of others were rolled back with %v, want once in time", rolledBack)
	}
	if d := depthOf(t, direct, good); d.Claims != 0 || d.Running != 0 || d.Pending != 1 {
		t.Errorf("left of the start: %+v", d)
	}
	if err := errors.Join(rdb.Close(), direct.Close()); err != nil {
		t.Error(err)
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

// F13: fx gives a start up whose time is over, and does not stop what it has started: it stops by itself.
func TestF13StartAfterItsTimeLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	rdb := &lateClient{UniversalClient: zqtest.Shared(t).Client(), last: cancel}
	run, _ := reporting()
	var h *zqfx.Health
	app, _ := assembled(t, fx.Provide(func() redis.UniversalClient { return rdb }), zqfx.Module(),
		zqfx.HandleFunc(zqtest.Queue(t), Placed, run), fx.Populate(&h))
	if err := app.Start(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("start: %v", err)
	}
	zqtest.Eventually(t, limit, func() bool {
		s := h.Status()
		return h.Check(t.Context()) != nil && len(s) == 1 && s[0].State == "stopped"
	}, "what has started stops again")
}

// lateClient calls last at the end of the consumer's checks, which clear up twice.
type lateClient struct {
	redis.UniversalClient
	clears atomic.Int64
	last   func()
}

// Del clears up.
func (c *lateClient) Del(ctx context.Context, keys ...string) *redis.IntCmd {
	if c.clears.Add(1) == 2 {
		defer c.last()
	}
	return c.UniversalClient.Del(ctx, keys...)
}
