package zqfx_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

func TestEnvSetsEveryFieldByItsPrefix(t *testing.T) {
	for name, value := range map[string]string{
		"REDIS_URL": "redis://host/1", "CONSUME": "true", "SHUTDOWN_TIMEOUT": "7s", "SHUTDOWN_RESERVE": "2s",
		"ON_FATAL": "degrade", "QUEUES": "orders:16,mail:64",
	} {
		t.Setenv("ZQ_"+name, value)
	}
	t.Setenv("ZQ_BIG_BILLING_SHUTDOWN_TIMEOUT", "9s")
	t.Setenv("ZQ_BIG_BILLING_ON_FATAL", "") // as if it were not set
	var given struct {
		fx.In
		Default zqfx.Config
		Billing zqfx.Config `name:"big-billing"`
	}
	billing := zqfx.Instance("big-billing")
	rdb := fx.Supply(fx.Annotate(zqtest.Shared(t).Client(), fx.ResultTags(`name:"big-billing"`)))
	started(t, rdb, zqfx.Module(zqfx.ProducerOnly()), zqfx.Queue("orders"), zqfx.Queue("mail"),
		zqfx.Module(billing, zqfx.ProducerOnly()), fx.Populate(&given))
	on := true
	want := zqfx.Config{
		RedisURL: "redis://host/1", Consume: &on, ShutdownTimeout: 7 * time.Second, ShutdownReserve: 2 * time.Second,
		OnFatal: "degrade", Queues: map[string]zqfx.QueueConfig{"orders": {Concurrency: 16}, "mail": {Concurrency: 64}},
	}
	for field, v := range reflect.ValueOf(want).Fields() {
		if v.IsZero() {
			t.Errorf("%s is not in this test", field.Name)
		}
	}
	if diff := diffConfigs(want, given.Default); diff != "" {
		t.Errorf("default instance (-want +got):\n%s", diff)
	}
	if diff := diffConfigs(zqfx.Config{ShutdownTimeout: 9 * time.Second}, given.Billing); diff != "" {
		t.Errorf("instance big-billing (-want +got):\n%s", diff)
	}
}

// diffConfigs compares field by field.
func diffConfigs(want, got zqfx.Config) string {
	type fields zqfx.Config // without its methods, which mask
	return cmp.Diff(fields(want), fields(got))
}

func TestEnvBadValuesAreErrorsBeforeTheStart(t *testing.T) {
	cases := []struct{ name, value, want string }{
		{"CONSUME", "perhaps", "perhaps"},
		{"SHUTDOWN_TIMEOUT", "12", "missing unit"},
		{"SHUTDOWN_TIMEOUT", "1ms", "config.ShutdownTimeout"},
		{"SHUTDOWN_RESERVE", "-1s", "config.ShutdownReserve"},
		{"ON_FATAL", "panic", `"panic"`},
		{"QUEUES", "orders", `"orders"`},
		{"QUEUES", "orders:", "concurrency"},
		{"QUEUES", "orders:many", "many"},
		{"QUEUES", "orders:0", "concurrency is 0"},
		{"QUEUES", "orders:-3", "concurrency is -3"},
		{"QUEUES", "orders:100000", "Concurrency"},
		{"QUEUES", "orders:1,", "key:value"},
		{"QUEUES", "or ders:1", "or ders"},
		{"QUEUES", "odrers:16", `"odrers", want a queue that the code declares: orders`},
	}
	for _, c := range cases {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			t.Setenv("ZQ_"+c.name, c.value)
			got := failed(t, shared(t), zqfx.Module(), zqfx.Queue("orders"), zqfx.HandleFunc("orders", Placed, nothing))
			mentions(t, got, c.want)
		})
	}
}

func TestEnvListsAllThatCannotBeRead(t *testing.T) {
	t.Setenv("ZQ_CONSUME", "perhaps")
	t.Setenv("ZQ_SHUTDOWN_TIMEOUT", "soon")
	t.Setenv("ZQ_QUEUES", "orders:many")
	got := failed(t, shared(t), zqfx.Module(), zqfx.HandleFunc("orders", Placed, nothing))
	mentions(t, got, "environment ZQ_", "perhaps", "soon", "many")
}

// witness is a handler's constructor that tells when it is called.
func witness(made *int) func() func(context.Context, *zq.Delivery, OrderPlaced) error {
	return func() func(context.Context, *zq.Delivery, OrderPlaced) error {
		*made++
		return nothing
	}
}

func TestHandlersOfAProcessThatOnlyProduces(t *testing.T) {
	off := false
	cases := map[string]struct {
		module []zqfx.ModuleOption
		env    string
		opts   []fx.Option
		made   int
	}{
		"consumes":                     {made: 1},
		"by the environment":           {env: "false"},
		"by the environment 0":         {env: "0"},
		"by code":                      {module: []zqfx.ModuleOption{zqfx.ProducerOnly()}},
		"by code over the environment": {module: []zqfx.ModuleOption{zqfx.ProducerOnly()}, env: "true"},
		"by the configuration":         {opts: []fx.Option{configured(func(c *zqfx.Config) { c.Consume = &off })}, made: 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.env != "" {
				t.Setenv("ZQ_CONSUME", c.env)
			}
			queue, made := zqtest.Queue(t), 0
			var p *zqfx.Producers
			started(t, append(c.opts, shared(t), plain(), zqfx.Module(c.module...), zqfx.Queue(queue),
				zqfx.Handle(queue, Placed, witness(&made)), fx.Populate(&p))...)
			if made != c.made {
				t.Errorf("%d handlers constructed, want %d", made, c.made)
			}
			if name == "consumes" {
				return
			}
			send(t, p, queue, "o-1")
			if n := pending(t, zqtest.Shared(t).Client(), queue); n != 1 {
				t.Errorf("%d pending, want 1: nobody works here", n)
			}
		})
	}
}

func TestConsumeOnOverAnEnvironmentThatLeftTheHandlersOutIsRefused(t *testing.T) {
	t.Setenv("ZQ_CONSUME", "false")
	on := true
	opts := []fx.Option{
		shared(t), zqfx.HandleFunc("orders", Placed, nothing), configured(func(c *zqfx.Config) { c.Consume = &on }),
	}
	mentions(t, failed(t, append(opts, zqfx.Module())...), "config.Consume", "ZQ_CONSUME=false")
	built(t, append(opts, zqfx.Module(zqfx.ProducerOnly()))...) // code comes first
}

func TestOneQueueOnlyProduces(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]zqfx.QueueOption{
		"ProducerOnly": zqfx.ProducerOnly(), "ConsumeHere": zqfx.ConsumeHere(false),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			works, sends := zqtest.Queue(t), zqtest.Queue(t)
			run, ran := reporting()
			var p *zqfx.Producers
			var w *zqfx.Worker
			started(t, shared(t), plain(), zqfx.Module(), zqfx.Queue(sends, option), zqfx.HandleFunc(sends, Placed, run),
				zqfx.HandleFunc(works, Placed, run), fx.Populate(&p, &w))
			send(t, p, sends, "o-1")
			send(t, p, works, "o-2")
			want(t, ran, "o-2")
			if got := w.Queues(); len(got) != 1 || got[0] != works {
				t.Errorf("consumes %q", got)
			}
			if n := pending(t, zqtest.Shared(t).Client(), sends); n != 1 {
				t.Errorf("%d pending, want 1", n)
			}
		})
	}
}
