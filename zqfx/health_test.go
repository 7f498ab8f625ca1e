package zqfx_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// probe asks a readiness handler as a load balancer does.
func probe(h *zqfx.Health) (code int, body string) {
	ready := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h.Check(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	w := httptest.NewRecorder()
	ready.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ready", http.NoBody))
	return w.Code, w.Body.String()
}

// answers fails the test unless the probe has that code and its body those words.
func answers(t *testing.T, h *zqfx.Health, code int, words ...string) {
	t.Helper()
	got, body := probe(h)
	if got != code {
		t.Errorf("the probe says %d %q, want %d", got, body, code)
	}
	mentions(t, body, words...)
}

// Readiness through all phases of an application's life.
func TestHealthThroughAllPhases(t *testing.T) {
	t.Parallel()
	rdb, queue := zqtest.Shared(t).Client(), zqtest.Queue(t)
	run, entered, letGo := deaf(t)
	var h *zqfx.Health
	var p *zqfx.Producers
	early := make(chan int, 1)
	app, _ := assembled(t, client(rdb), fx.Decorate(func(c zqfx.Config, lc fx.Lifecycle) zqfx.Config { // the first hook
		lc.Append(fx.StartHook(func() { code, _ := probe(h); early <- code }))
		return c
	}), zqfx.Module(), zqfx.Queue(queue), zqfx.HandleFunc(queue, Placed, run), fx.Populate(&h, &p))
	answers(t, h, 503, "not started")
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := app.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if code := zqtest.Wait(t, early, limit); code != 503 {
		t.Errorf("during the start the probe says %d", code)
	}
	answers(t, h, 200)
	send(t, p, queue, "o-1")
	want(t, entered, "o-1")
	answers(t, h, 200)
	paused(t, rdb, queue, true)
	letGo()
	send(t, p, queue, "o-2") // a consumer finds out when it looks for work
	zqtest.Eventually(t, limit, func() bool { return h.Status()[0].State == "paused" }, "it is paused")
	answers(t, h, 200)
	paused(t, rdb, queue, false)
	want(t, entered, "o-2")
	answers(t, h, 200)
	if s := h.Status(); s[0].Queue != queue || s[0].Stats.Started != 2 || len(s[0].Trouble) > 0 {
		t.Errorf("status %+v", s)
	}
	stopped(t, app)
	answers(t, h, 503, "stopping")
}

// In the middle of a drain the process is not ready for more.
func TestHealthIsNotReadyWhileDraining(t *testing.T) {
	t.Parallel()
	queue := zqtest.Queue(t)
	run, entered, letGo := deaf(t)
	var h *zqfx.Health
	var p *zqfx.Producers
	app, _ := begun(t, shared(t), zqfx.Module(), zqfx.HandleFunc(queue, Placed, run), fx.Populate(&h, &p))
	send(t, p, queue, "o-1")
	want(t, entered, "o-1")
	answers(t, h, 200)
	end := stopping(app, limit)
	zqtest.Eventually(t, limit, func() bool { code, _ := probe(h); return code == 503 }, "it is not ready")
	select {
	case err := <-end:
		t.Errorf("it stopped ahead of its handler: %v", err)
	default:
	}
	letGo()
	if err := zqtest.Wait(t, end, limit); err != nil {
		t.Error(err)
	}
}

// paused pauses or resumes a queue.
func paused(t *testing.T, rdb redis.UniversalClient, queue string, on bool) {
	t.Helper()
	in := inspectorOf(t, rdb, queue)
	change := in.Resume
	if on {
		change = in.Pause
	}
	if _, err := change(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// B19: what an outage does to a whole application with the standard chain: it is not ready while it lasts, ready
// after it, and works again.
func TestB19OutageShowsAndPasses(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"restarted", "cut off", "silent"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			server := zqtest.Redis(t)
			proxy := zqtest.Proxy(t, server.Addr())
			rdb := server.Client(func(o *redis.Options) { o.Addr = proxy.Addr() })
			queue := zqtest.Queue(t)
			run, ran := reporting()
			var h *zqfx.Health
			var p *zqfx.Producers
			app, _ := begun(t, client(rdb), zqfx.Module(), zqfx.Queue(queue, zqfx.Lease(time.Second)),
				zqfx.HandleFunc(queue, Placed, run), fx.Populate(&h, &p))
			send(t, p, queue, "before")
			want(t, ran, "before")
			zqtest.Eventually(t, limit, func() bool { return h.Status()[0].Stats.Settled == 1 }, "its ack is recorded")
			back := server.Restart
			switch how {
			case "restarted":
				server.Kill()
			case "cut off":
				proxy.Cut()
				back = proxy.Heal
			case "silent":
				server.Pause()
				back = server.Resume
			}
			zqtest.Eventually(t, limit, func() bool { return h.Check(t.Context()) != nil }, "it is not ready")
			answers(t, h, 503, queue+" is degraded: ")
			back()
			ready := func() bool { return h.Check(t.Context()) == nil }
			zqtest.Eventually(t, limit, ready, "it is ready, without a message that shows it")
			sendInTheEnd(t, p, queue, "after")
			want(t, ran, "after")
			zqtest.Eventually(t, limit, ready, "it is ready")
			stopped(t, app)
		})
	}
}

// sendInTheEnd sends again until Redis takes it; the id makes it one message.
func sendInTheEnd(t *testing.T, p *zqfx.Producers, queue, id string) {
	t.Helper()
	producer, err := p.For(queue)
	if err != nil {
		t.Fatal(err)
	}
	zqtest.Eventually(t, limit, func() bool {
		_, err := Placed.Send(t.Context(), producer, OrderPlaced{ID: id}, zq.WithID(id))
		return err == nil
	}, "Redis takes messages")
}

// B19: all connections are killed at once, the blocked one included; nobody is deaf after that.
func TestB19KilledConnectionsComeBack(t *testing.T) {
	t.Parallel()
	server, queue := zqtest.Redis(t), zqtest.Queue(t)
	run, ran := reporting()
	var h *zqfx.Health
	var p *zqfx.Producers
	app, _ := begun(t, client(server.Client()), zqfx.Module(), zqfx.HandleFunc(queue, Placed, run), fx.Populate(&h, &p))
	admin := server.Client()
	for _, id := range []string{"o-1", "o-2", "o-3"} {
		zqtest.Eventually(t, limit, func() bool { return h.Status()[0].State == "idle" }, "it waits")
		if err := admin.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err(); err != nil {
			t.Fatal(err)
		}
		send(t, p, queue, id)
		want(t, ran, id)
	}
	zqtest.Eventually(t, limit, func() bool { return h.Check(t.Context()) == nil }, "it is ready")
	stopped(t, app)
}

// A process that only produces asks Redis, and not for longer than a second.
func TestHealthOfAProducerAsksRedis(t *testing.T) {
	t.Parallel()
	server := zqtest.Redis(t)
	var h *zqfx.Health
	app, _ := assembled(t, client(server.Client()), zqfx.Module(zqfx.ProducerOnly()), zqfx.Queue(zqtest.Queue(t)),
		fx.Populate(&h))
	answers(t, h, 503, "not started")
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := app.Start(ctx); err != nil {
		t.Fatal(err)
	}
	answers(t, h, 200)
	if len(h.Status()) != 0 {
		t.Errorf("status %+v", h.Status())
	}
	over, cancelled := context.WithCancel(t.Context())
	cancelled()
	if err := h.Check(over); !errors.Is(err, zqfx.ErrNotReady) || !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is over: %v", err)
	}
	server.Pause()
	began := time.Now()
	answers(t, h, 503, "ping")
	if took := time.Since(began); took > 2500*time.Millisecond {
		t.Errorf("a silent Redis was waited for %v", took)
	}
	server.Resume()
	zqtest.Eventually(t, limit, func() bool { return h.Check(t.Context()) == nil }, "it is ready")
	stopped(t, app)
	answers(t, h, 503, "stopping")
}

// B49: a client that panics makes the process not ready, and takes nobody down.
func TestB49PanicInThePingIsNotReady(t *testing.T) {
	t.Parallel()
	var h *zqfx.Health
	app, _ := begun(t, universal(struct{ redis.UniversalClient }{}), zqfx.Module(zqfx.ProducerOnly()),
		zqfx.Queue(zqtest.Queue(t)), fx.Populate(&h))
	answers(t, h, 503, "panicked")
	stopped(t, app)
}

// Health may be asked from anywhere while the application starts and stops.
func TestHealthConcurrentSafe(t *testing.T) {
	t.Parallel()
	queue := zqtest.Queue(t)
	var h *zqfx.Health
	run := func(context.Context, *zq.Delivery, OrderPlaced) error { return nil }
	app, _ := assembled(t, shared(t), plain(), zqfx.Module(), zqfx.HandleFunc(queue, Placed, run), fx.Populate(&h))
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	over, asked := make(chan struct{}), make(chan struct{})
	go func() { // ends with over
		defer close(asked)
		for {
			select {
			case <-over:
				return
			default:
				_, _ = h.Check(ctx), h.Status()
			}
		}
	}()
	if err := app.Start(ctx); err != nil {
		t.Error(err)
	}
	stopped(t, app)
	close(over)
	zqtest.Wait(t, asked, limit)
}
