package zqfx_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// B54: Redis goes away in the middle of the stop, in each way there is. The stop keeps to its budget, the hooks of
// others run in time, and when Redis is back nothing is lost.
func TestB54RedisGoesDuringTheStop(t *testing.T) {
	t.Parallel()
	const shutdown = 2 * time.Second
	for _, how := range []string{"killed", "silent", "cut off"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			server, queue := zqtest.Redis(t, zqtest.WithAppendOnly()), zqtest.Queue(t)
			proxy := zqtest.Proxy(t, server.Addr())
			rdb := server.Client(func(o *redis.Options) { o.Addr = proxy.Addr() })
			run, entered, ended := heeding()
			closed := make(chan closing, 1)
			var h *zqfx.Health
			app, _ := begun(t, client(rdb), shutdownIn(shutdown), fx.Populate(&h), zqfx.Module(),
				zqfx.Queue(queue, zqfx.Lease(time.Second)),
				zqfx.Handle(queue, Placed, func(lc fx.Lifecycle) typedRun {
					lc.Append(fx.StopHook(func(ctx context.Context) { closed <- closing{over: ctx.Err()} }))
					return run
				}))
			for _, id := range []string{"o-1", "o-2", "o-3"} {
				put(t, rdb, queue, id)
				want(t, entered, id)
			}
			began := time.Now()
			end := stopping(app, 10*time.Second)
			zqtest.Eventually(t, limit, func() bool { return h.Check(t.Context()) != nil }, "it stops")
			back := server.Restart
			switch how {
			case "killed":
				server.Kill()
			case "silent":
				server.Pause()
				back = server.Resume
			case "cut off":
				proxy.Cut()
				back = proxy.Heal
			}
			for range 3 { // now there are outcomes, and nobody takes them
				zqtest.Wait(t, ended, limit) // by the shutdown, or because the lease is over
			}
			if got := zqtest.Wait(t, closed, limit); got.over != nil {
				t.Errorf("the hook of others ran too late: %v", got.over)
			}
			err := zqtest.Wait(t, end, limit)
			if took := time.Since(began); took > shutdown+2*time.Second {
				t.Errorf("the stop took %v: %v", took, err)
			}
			back()
			finished(t, server.Client(), queue, 3)
		})
	}
}

// B54: Redis is gone before the stop begins; the stop keeps to its budget all the same, without a deadline too.
func TestB54StopWithoutRedisIsBounded(t *testing.T) {
	t.Parallel()
	server, queue := zqtest.Redis(t), zqtest.Queue(t)
	rdb := server.Client()
	run, entered, _ := deaf(t)
	app, _ := begun(t, client(rdb), shutdownIn(500*time.Millisecond), zqfx.Module(), zqfx.HandleFunc(queue, Placed, run))
	put(t, rdb, queue, "o-1")
	want(t, entered, "o-1")
	server.Kill()
	began := time.Now()
	if err := zqtest.Wait(t, stopping(app, 0), limit); err == nil {
		t.Error("the stop did not tell of the deaf handler")
	}
	if took := time.Since(began); took > 2500*time.Millisecond {
		t.Errorf("the stop took %v", took)
	}
}

// F10, B54: without an answer from Redis the drain takes all it may, and that is not the time of others.
func TestF10ReserveIsKeptWithoutRedis(t *testing.T) {
	t.Parallel()
	server, queue := zqtest.Redis(t), zqtest.Queue(t)
	rdb := server.Client()
	run, entered, _ := deaf(t)
	closed := make(chan closing, 1)
	app, _ := begun(t, client(rdb), zqfx.Module(), zqfx.Handle(queue, Placed, func(lc fx.Lifecycle) typedRun {
		lc.Append(fx.StopHook(func(ctx context.Context) { closed <- closing{over: ctx.Err()} }))
		return run
	}))
	put(t, rdb, queue, "o-1")
	want(t, entered, "o-1")
	server.Pause()
	defer server.Resume()
	end := stopping(app, 4*time.Second)
	if got := zqtest.Wait(t, closed, limit); got.over != nil {
		t.Errorf("the hook of others ran too late: %v", got.over)
	}
	if err := zqtest.Wait(t, end, limit); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stop: %v, want what was not done, ahead of the deadline", err)
	}
}
