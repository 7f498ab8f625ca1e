package zqfx_test

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// countingShutdowner counts how often the application is asked to end.
type countingShutdowner struct {
	fx.Shutdowner
	calls *atomic.Int64
}

// Shutdown counts.
func (s countingShutdowner) Shutdown(opts ...fx.ShutdownOption) error {
	s.calls.Add(1)
	return s.Shutdowner.Shutdown(opts...)
}

// counting puts a counter in front of the application's Shutdowner.
func counting(calls *atomic.Int64) fx.Option {
	return fx.Decorate(func(s fx.Shutdowner) fx.Shutdowner { return countingShutdowner{s, calls} })
}

// F15: a consumer that ends by itself ends the application, by a code that Wait tells. All of them together ask for
// that once; the stop that follows is in good order, so that Run exits by that code.
func TestF15FatalErrorShutsDownOnce(t *testing.T) {
	t.Parallel()
	rdb, queues := zqtest.Shared(t).Client(), []string{zqtest.Queue(t), zqtest.Queue(t), zqtest.Queue(t)}
	run, _ := reporting()
	var calls atomic.Int64
	var h *zqfx.Health
	opts := []fx.Option{client(rdb), zqfx.Module(), counting(&calls), fx.Populate(&h)}
	for _, q := range queues {
		opts = append(opts, zqfx.HandleFunc(q, Placed, run))
	}
	app, log := begun(t, opts...)
	signals := app.Wait()
	for _, q := range queues {
		newerLayout(t, rdb, q)
	}
	if s := zqtest.Wait(t, signals, limit); s.ExitCode != 70 {
		t.Errorf("the signal is %+v, want exit code 70", s)
	}
	zqtest.Eventually(t, limit, func() bool { return !slices.ContainsFunc(h.Status(), works) }, "all have ended")
	stopped(t, app)
	if n := calls.Load(); n != 1 {
		t.Errorf("the application was asked to end %d times", n)
	}
	log.says(t, "a consumer has ended", "policy=shutdown", zq.ErrNewerLayout.Error())
}

func works(s zqfx.QueueStatus) bool { return s.State != "stopped" }

// F15: under Run the process exits with 70, after a stop in good order.
func TestF15RunExitsWithTheCode(t *testing.T) {
	t.Parallel()
	server, queue := zqtest.Shared(t), zqtest.Queue(t)
	p := program{Addr: server.Addr(), Queue: queue, Lease: time.Minute, Shutdown: time.Second}.start(t)
	expect(t, p, "up")
	newerLayout(t, server.Client(), queue)
	if code := p.Wait(limit); code != 70 {
		t.Errorf("it exited with %d", code)
	}
	if said := p.Output(); !slices.Contains(said, "database closed") || slices.Contains(said, "over") {
		t.Errorf("it said %q", said)
	}
}

// F15: a handler of another queue that is deaf makes the stop no less one by that code: its error is logged.
func TestF15DeafHandlerDoesNotHideTheCode(t *testing.T) {
	t.Parallel()
	rdb, bad, other := zqtest.Shared(t).Client(), zqtest.Queue(t), zqtest.Queue(t)
	run, entered, _ := deaf(t)
	quick, _ := reporting()
	var p *zqfx.Producers
	app, log := begun(t, client(rdb), shutdownIn(300*time.Millisecond), zqfx.Module(), zqfx.HandleFunc(bad, Placed, quick),
		zqfx.HandleFunc(other, Placed, run), fx.Populate(&p))
	send(t, p, other, "o-1")
	want(t, entered, "o-1")
	signals := app.Wait()
	newerLayout(t, rdb, bad)
	if s := zqtest.Wait(t, signals, limit); s.ExitCode != 70 {
		t.Errorf("the signal is %+v, want exit code 70", s)
	}
	stopped(t, app)
	log.says(t, "did not stop in good order", "1 handlers did not return")
}

// F15: the stop comes while a consumer that ends by itself still waits for its handler: OnFatal is told all the same.
func TestF15StopDuringAnEndIsToldToOnFatal(t *testing.T) {
	t.Parallel()
	rdb, queue := zqtest.Shared(t).Client(), zqtest.Queue(t)
	run, entered, letGo := deaf(t)
	told := make(chan ending, 10)
	var h *zqfx.Health
	var p *zqfx.Producers
	app, _ := begun(t, client(rdb), zqfx.HandleFunc(queue, Placed, run), fx.Populate(&h, &p),
		zqfx.Module(zqfx.OnFatal(zqfx.FatalFunc(func(queue string, err error) { told <- ending{queue, err} }))))
	send(t, p, queue, "o-1")
	want(t, entered, "o-1")
	newerLayout(t, rdb, queue)
	zqtest.Eventually(t, limit, func() bool { return h.Status()[0].State == "stopped" }, "it ends")
	end := stopping(app, limit)
	zqtest.Eventually(t, limit, func() bool {
		_, body := probe(h)
		return strings.Contains(body, "stopping")
	}, "the stop begins")
	letGo()
	if err := zqtest.Wait(t, end, limit); err != nil {
		t.Errorf("stop: %v", err)
	}
	if got := zqtest.Wait(t, told, limit); !errors.Is(got.err, zq.ErrNewerLayout) || len(told) > 0 {
		t.Errorf("told %v, and %d times more", got.err, len(told))
	}
}

// F15: degraded, the application goes on with its other queues, says so, and stops as if nothing was.
func TestF15DegradeGoesOnWithTheOthers(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]fx.Option{
		"by code": zqfx.Module(zqfx.OnFatal(zqfx.FatalDegrade())),
		"by configuration": fx.Options(zqfx.Module(), fx.Decorate(func(c zqfx.Config) zqfx.Config {
			c.OnFatal = "degrade"
			return c
		})),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb, good, bad := zqtest.Shared(t).Client(), zqtest.Queue(t), zqtest.Queue(t)
			run, ran := reporting()
			var calls atomic.Int64
			var h *zqfx.Health
			var p *zqfx.Producers
			app, log := begun(t, client(rdb), how, counting(&calls), fx.Populate(&h, &p),
				zqfx.HandleFunc(good, Placed, run), zqfx.HandleFunc(bad, Placed, run))
			if err := h.Check(t.Context()); err != nil {
				t.Errorf("before: %v", err)
			}
			newerLayout(t, rdb, bad)
			zqtest.Eventually(t, limit, func() bool { return h.Check(t.Context()) != nil }, "it says so")
			err := h.Check(t.Context())
			if !errors.Is(err, zqfx.ErrNotReady) {
				t.Errorf("health: %v", err)
			}
			mentions(t, err.Error(), bad+" is stopped")
			send(t, p, good, "o-1")
			want(t, ran, "o-1")
			stopped(t, app)
			if n := calls.Load(); n != 0 {
				t.Errorf("the application was asked to end %d times", n)
			}
			log.says(t, "a consumer has ended", "policy=degrade")
		})
	}
}

// ending is what a function for fatal errors was told.
type ending struct {
	queue string
	err   error
}

// F15: a function is told once of each consumer, and comes before the configuration.
func TestF15FuncIsToldOfEach(t *testing.T) {
	t.Parallel()
	rdb, a, b := zqtest.Shared(t).Client(), zqtest.Queue(t)+".a", zqtest.Queue(t)+".b"
	run, _ := reporting()
	var calls atomic.Int64
	told := make(chan ending, 10)
	app, _ := begun(t, client(rdb), counting(&calls), zqfx.HandleFunc(a, Placed, run), zqfx.HandleFunc(b, Placed, run),
		fx.Decorate(func(c zqfx.Config) zqfx.Config { c.OnFatal = "shutdown"; return c }),
		zqfx.Module(zqfx.OnFatal(zqfx.FatalFunc(func(queue string, err error) { told <- ending{queue, err} }))))
	for _, q := range []string{a, b} {
		newerLayout(t, rdb, q)
		got := zqtest.Wait(t, told, limit)
		if got.queue != q || !errors.Is(got.err, zq.ErrNewerLayout) {
			t.Errorf("told of %s: %v", got.queue, got.err)
		}
	}
	stopped(t, app)
	if n := calls.Load(); n != 0 || len(told) != 0 {
		t.Errorf("asked to end %d times, told %d times more", n, len(told))
	}
}

// F15, B49: a function that panics is an error in the log, and the stop is in good order.
func TestF15PanicInFuncIsLogged(t *testing.T) {
	t.Parallel()
	rdb, queue := zqtest.Shared(t).Client(), zqtest.Queue(t)
	run, _ := reporting()
	called := make(chan struct{}, 10)
	app, log := begun(t, client(rdb), zqfx.HandleFunc(queue, Placed, run), zqfx.Module(zqfx.OnFatal(
		zqfx.FatalFunc(func(string, error) { called <- struct{}{}; panic("no way out") }))))
	newerLayout(t, rdb, queue)
	zqtest.Wait(t, called, limit)
	stopped(t, app)
	log.says(t, "OnFatal failed", "no way out")
}

// A function that does not return holds the stop up, and for its time alone.
func TestF15DeafFuncDoesNotHangTheStop(t *testing.T) {
	t.Parallel()
	rdb, queue := zqtest.Shared(t).Client(), zqtest.Queue(t)
	run, _ := reporting()
	called, letGo := make(chan struct{}), make(chan struct{})
	defer close(letGo)
	app, _ := begun(t, client(rdb), shutdownIn(300*time.Millisecond), zqfx.HandleFunc(queue, Placed, run),
		zqfx.Module(zqfx.OnFatal(zqfx.FatalFunc(func(string, error) { close(called); <-letGo }))))
	newerLayout(t, rdb, queue)
	zqtest.Wait(t, called, limit)
	err := zqtest.Wait(t, stopping(app, 0), limit)
	if err == nil {
		t.Fatal("no error")
	}
	mentions(t, err.Error(), "OnFatal")
}

// A stop that somebody asked for is no fatal error, not even for a consumer with a deaf handler.
func TestF15StopIsNotFatal(t *testing.T) {
	t.Parallel()
	rdb, queue := zqtest.Shared(t).Client(), zqtest.Queue(t)
	run, entered, _ := deaf(t)
	told := make(chan ending, 10)
	var p *zqfx.Producers
	app, _ := begun(t, client(rdb), shutdownIn(200*time.Millisecond), zqfx.HandleFunc(queue, Placed, run), fx.Populate(&p),
		zqfx.Module(zqfx.OnFatal(zqfx.FatalFunc(func(queue string, err error) { told <- ending{queue, err} }))))
	send(t, p, queue, "o-1")
	want(t, entered, "o-1")
	if err := zqtest.Wait(t, stopping(app, 0), limit); err == nil {
		t.Error("the stop did not tell of the deaf handler")
	}
	if len(told) != 0 {
		t.Errorf("told %v", <-told)
	}
}
