package zqfx_test

import (
	"context"
	"strings"
	"testing"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// What cannot work is refused before the start, with the place where it was written.
func TestRefusedBeforeStart(t *testing.T) {
	t.Setenv("ZQ_REDIS_URL", "")
	nothing := func(context.Context, *zq.Delivery, OrderPlaced) error { return nil }
	rdb := zqtest.Shared(t).Client()
	cases := map[string]struct {
		opts []fx.Option
		want []string
	}{
		"no client": {
			[]fx.Option{zqfx.Module(), zqfx.HandleFunc("orders", Placed, nothing)},
			[]string{"ZQ_REDIS_URL", "redis.UniversalClient"},
		},
		"F16 one kind twice": {
			[]fx.Option{client(rdb), zqfx.Module(), zqfx.HandleFunc("orders", Placed, nothing), zqfx.HandleFunc("orders", Placed, nothing)},
			[]string{"refusal_test.go:", "orders"},
		},
		"handler of another kind": {
			[]fx.Option{client(rdb), zqfx.Module(), zqfx.Handle("orders", Placed, func() int { return 1 })},
			[]string{"refusal_test.go:"},
		},
		"option out of range": {
			[]fx.Option{client(rdb), zqfx.Module(), zqfx.Queue("orders", zqfx.Concurrency(-1)), zqfx.HandleFunc("orders", Placed, nothing)},
			[]string{"Concurrency", "-1", "refusal_test.go:"},
		},
		"queue without a handler": {
			[]fx.Option{client(rdb), zqfx.Module(), zqfx.Queue("orders")},
			[]string{"orders"},
		},
	}
	for name, c := range cases {
		got := failed(t, c.opts...)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in:\n%s", name, want, got)
			}
		}
	}
}

// A producer-only process needs no handlers.
func TestProducerOnly(t *testing.T) {
	t.Parallel()
	queue := zqtest.Queue(t)
	var p *zqfx.Producers
	started(t, shared(t), plain(), zqfx.Module(zqfx.ProducerOnly()), zqfx.Queue(queue), fx.Populate(&p))
	send(t, p, queue, "o-1")
	in, err := zq.NewInspector(zqtest.Shared(t).Client(), queue)
	if err != nil {
		t.Fatal(err)
	}
	if d, err := in.Depth(t.Context()); err != nil || d.Pending != 1 {
		t.Errorf("%d pending, %v", d.Pending, err)
	}
}
