package zqfx_test

import (
	"bytes"
	"context"
	stdlog "log"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"github.com/zqueue/zqueue/middleware"
	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// concurrencyOf is what the queue orders of an instance has in the end.
func concurrencyOf(t *testing.T, i string, opts ...fx.Option) int {
	t.Helper()
	var w *zqfx.Worker
	module, handle, tag := zqfx.Module(), zqfx.HandleFunc("orders", Placed, nothing), ""
	if i != "" {
		module, tag = zqfx.Module(zqfx.Instance(i)), `name:"`+i+`"`
		handle = zqfx.HandleFunc("orders", Placed, nothing, zqfx.Instance(i))
	}
	rdb := fx.Supply(fx.Annotated{Name: "billing", Target: zqtest.Shared(t).Client()})
	built(t, append(opts, shared(t), rdb, module, handle, fx.Populate(fx.Annotate(&w, fx.ParamTags(tag))))...)
	_, c, err := w.Handler("orders")
	if err != nil {
		t.Fatal(err)
	}
	return c.Concurrency
}

func of(n int) map[string]zqfx.QueueConfig {
	return map[string]zqfx.QueueConfig{"orders": {Concurrency: n}}
}

func TestF6ConfigIsDecoratedAndReplacedBesideTheModule(t *testing.T) {
	t.Setenv("ZQ_SHUTDOWN_TIMEOUT", "8s")
	t.Setenv("ZQ_QUEUES", "orders:2")
	byFile := zqfx.Config{Queues: of(5)}
	cases := map[string]struct {
		instance string
		option   fx.Option
		want     int
	}{
		"environment alone": {"", fx.Options(), 2},
		"decorated": {"", fx.Decorate(func(c zqfx.Config) zqfx.Config {
			if c.ShutdownTimeout != 8*time.Second || c.Queues["orders"].Concurrency != 2 {
				t.Errorf("decorated is %v, not the environment's", c)
			}
			c.Queues = of(3)
			return c
		}), 3},
		"decorated with a dependency": {"", fx.Options(fx.Supply(&byFile),
			fx.Decorate(func(_ zqfx.Config, c *zqfx.Config) zqfx.Config { return *c })), 5},
		"decorated with an error": {"", fx.Decorate(func(c zqfx.Config) (zqfx.Config, error) {
			c.Queues = of(6)
			return c, nil
		}), 6},
		"replaced": {"", fx.Replace(byFile), 5},
		"instance decorated": {"billing", fx.Decorate(fx.Annotate(func(c zqfx.Config) zqfx.Config { c.Queues = of(4); return c },
			fx.ParamTags(`name:"billing"`), fx.ResultTags(`name:"billing"`))), 4},
		"instance replaced": {"billing", fx.Replace(fx.Annotate(byFile, fx.ResultTags(`name:"billing"`))), 5},
		"another instance":  {"billing", fx.Options(), 0},
		"in a module of its own": {"", fx.Module("elsewhere", fx.Decorate(func(c zqfx.Config) zqfx.Config {
			t.Error("fx keeps a decoration in its module")
			return c
		})), 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := concurrencyOf(t, c.instance, c.option); got != c.want {
				t.Errorf("concurrency %d, want %d", got, c.want)
			}
		})
	}
}

func TestF6WhatReplacesTheConfigIsValidated(t *testing.T) {
	t.Parallel()
	got := failed(t, shared(t), zqfx.Module(), zqfx.HandleFunc("orders", Placed, nothing),
		fx.Replace(zqfx.Config{OnFatal: "explode", ShutdownTimeout: -1}))
	mentions(t, got, "config.OnFatal", "config.ShutdownTimeout")
}

// Decorating the group of handlers is not possible, for its type is this package's. What it is wanted for is: the
// chain wraps every handler, and the client is decorated like any other value.
func TestF7TheChainWrapsAllHandlersAndTheClientIsDecorated(t *testing.T) {
	t.Parallel()
	server := zqtest.Redis(t)
	one, two := database(server, 1), database(server, 2)
	var mu sync.Mutex
	wrapped := map[string]bool{}
	run, ran := reporting()
	var p *zqfx.Producers
	started(t, client(one), fx.Decorate(func(*redis.Client) *redis.Client { return two }), fx.Populate(&p),
		zqfx.Chain(middleware.Standard(middleware.User("wrap", func(next zq.Handler) zq.Handler {
			return zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
				mu.Lock()
				wrapped[d.Queue] = true
				mu.Unlock()
				return next.Handle(ctx, d)
			})
		}))),
		zqfx.Module(), fx.Module("shop", zqfx.HandleFunc("orders", Placed, run)),
		fx.Module("mail", zqfx.HandleFunc("mail", Placed, run)))
	for _, queue := range []string{"orders", "mail"} {
		send(t, p, queue, queue)
		want(t, ran, queue)
	}
	mu.Lock()
	defer mu.Unlock()
	if !wrapped["orders"] || !wrapped["mail"] {
		t.Errorf("wrapped: %v", wrapped)
	}
	if n := one.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys in the database of the client that was decorated", n)
	}
}

// events are what the application's own event logger hears.
type events struct {
	mu      sync.Mutex
	modules map[string]int
}

func (e *events) LogEvent(event fxevent.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p, ok := event.(*fxevent.Provided); ok {
		e.modules[p.ModuleName]++
	}
}

func TestF18TheApplicationsEventLoggerHearsTheModuleToo(t *testing.T) {
	t.Parallel()
	heard := &events{modules: map[string]int{}}
	err := fx.New(fx.WithLogger(func() fxevent.Logger { return heard }), shared(t), zqfx.Module(), zqfx.Queue("orders"),
		zqfx.HandleFunc("orders", Placed, nothing)).Err()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"zqfx", "zqfx.Queue(orders)", `zqfx.Handle("orders", "order.placed")`} {
		if heard.modules[name] == 0 {
			t.Errorf("nothing heard of %s; heard of %v", name, heard.modules)
		}
	}
}

// lines is a log that several goroutines write.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func TestF18LinesGoToTheLoggerInTheGraphAndNameTheInstance(t *testing.T) {
	t.Parallel()
	var log lines
	queue := zqtest.Queue(t)
	run, ran := reporting()
	billing := zqfx.Instance("billing")
	var p struct {
		fx.In
		Billing *zqfx.Producers `name:"billing"`
	}
	started(t, fx.Supply(fx.Annotated{Name: "billing", Target: zqtest.Shared(t).Client()}),
		fx.Supply(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))),
		zqfx.Module(billing), zqfx.HandleFunc(queue, Placed, run, billing), fx.Populate(&p))
	send(t, p.Billing, queue, "secret-7")
	want(t, ran, "secret-7")
	zqtest.Eventually(t, limit, func() bool { return strings.Contains(log.String(), "outcome=ack") }, "the line of the run")
	mentions(t, log.String(), "instance=billing", "zqfx: chain",
		`outermost_first="recovery > tracing > metrics > logging > deadletter`,
		"default settings")
	if strings.Contains(log.String(), "secret-7") {
		t.Errorf("the log has a payload:\n%s", log.String())
	}
	for line := range strings.Lines(log.String()) {
		if !strings.Contains(line, "instance=billing") {
			t.Errorf("a line without its instance: %s", line)
		}
	}
}

func TestF18WithoutALoggerInTheGraphLinesGoToTheDefaultOne(t *testing.T) {
	var log lines
	before, out, flags := slog.Default(), stdlog.Writer(), stdlog.Flags()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(func() {
		slog.SetDefault(before)
		stdlog.SetOutput(out) // which SetDefault has turned to the logger
		stdlog.SetFlags(flags)
	})
	built(t, shared(t), zqfx.Module(), zqfx.HandleFunc("orders", Placed, nothing))
	mentions(t, log.String(), "zqfx: chain", "queue=orders")
}
