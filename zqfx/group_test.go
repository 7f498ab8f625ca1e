package zqfx_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// apps is enough for fx's shuffle of value groups to show: five members have forty orders in fifty applications.
const apps = 40

func nothing(context.Context, *zq.Delivery, OrderPlaced) error { return nil }

func TestF1ManyApplicationsTellTheirFaultsInOneOrder(t *testing.T) {
	t.Parallel()
	opts := []fx.Option{shared(t), zqfx.Module()}
	for _, queue := range []string{"e", "d", "c", "b", "a"} {
		opts = append(opts, zqfx.HandleFunc(queue, Placed, nothing), zqfx.HandleFunc(queue, Placed, nothing),
			zqfx.Chain(zqfx.PlainChain(nil), zqfx.ForQueue(queue)), zqfx.Chain(zqfx.PlainChain(nil), zqfx.ForQueue(queue)),
			zqfx.Queue("idle-"+queue))
	}
	first := failed(t, opts...)
	for _, queue := range []string{"a", "b", "c", "d", "e"} {
		mentions(t, first, fmt.Sprintf("in queue %q", queue), fmt.Sprintf("ForQueue(%q)", queue),
			fmt.Sprintf("Queue(%q)", "idle-"+queue))
	}
	for range apps {
		if got := failed(t, opts...); got != first {
			t.Fatalf("one application says:\n%s\nanother:\n%s", first, got)
		}
	}
}

func TestF1ManyApplicationsBuildOneChainAroundTheHandler(t *testing.T) {
	t.Parallel()
	var order []string
	step := func(name string) zq.Middleware {
		return func(next zq.Handler) zq.Handler {
			return zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
				order = append(order, name)
				return next.Handle(ctx, d)
			})
		}
	}
	kinds := make([]zq.Kind[OrderPlaced], 5)
	opts := []fx.Option{shared(t), zqfx.Module(), zqfx.Chain(zqfx.PlainChain(zq.Chain{step("of all")}))}
	for i := range kinds {
		kinds[i] = zq.NewKind[OrderPlaced](fmt.Sprintf("kind-%d", i))
		opts = append(opts, zqfx.HandleFunc("orders", kinds[i], func(context.Context, *zq.Delivery, OrderPlaced) error {
			order = append(order, kinds[i].Name())
			return nil
		}), zqfx.HandleFunc(fmt.Sprintf("other-%d", i), Placed, nothing))
	}
	opts = append(opts, zqfx.Chain(zqfx.PlainChain(zq.Chain{step("a"), step("b"), step("c")}), zqfx.ForQueue("orders")))
	for range apps {
		var w *zqfx.Worker
		built(t, append(opts, fx.Populate(&w))...)
		if got := w.Queues(); !slices.Equal(got, []string{"orders", "other-0", "other-1", "other-2", "other-3", "other-4"}) {
			t.Fatalf("queues %q", got)
		}
		h, _, err := w.Handler("orders")
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range kinds {
			order = nil
			d := &zq.Delivery{Kind: kind.Name(), ContentType: "application/json", Body: []byte("{}")}
			if err := h.Handle(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(order, []string{"a", "b", "c", kind.Name()}) {
				t.Fatalf("order %q", order)
			}
		}
	}
}

// repository is what a handler in a module of the application depends on.
type repository struct{ saved chan string }

// keeper is a handler with its method on a pointer.
type keeper struct{ repo *repository }

func newKeeper(r *repository) *keeper { return &keeper{r} }

// Handle keeps an order.
func (k *keeper) Handle(_ context.Context, _ *zq.Delivery, o OrderPlaced) error {
	k.repo.saved <- o.ID
	return nil
}

func TestF2HandlersInNestedModulesAreSeenTheirConstructorsPrivate(t *testing.T) {
	t.Parallel()
	one, two := zqtest.Queue(t), zqtest.Queue(t)
	first, second := &repository{make(chan string, 1)}, &repository{make(chan string, 1)}
	var p *zqfx.Producers
	started(t, shared(t), plain(), fx.Populate(&p),
		fx.Module("shop",
			fx.Module("orders", fx.Supply(first, fx.Private), zqfx.Handle(one, Placed, newKeeper)),
			fx.Module("mail", fx.Supply(second, fx.Private), zqfx.Handle(two, Placed, newKeeper)),
		),
		zqfx.Module(),
	)
	send(t, p, one, "o-1")
	send(t, p, two, "o-2")
	want(t, first.saved, "o-1")
	want(t, second.saved, "o-2")
}

func TestF2HandlerDoesNotClashWithTheApplicationsOwn(t *testing.T) {
	t.Parallel()
	queue := zqtest.Queue(t)
	repo := &repository{make(chan string, 1)}
	var p *zqfx.Producers
	var own *keeper
	started(t, shared(t), plain(), zqfx.Module(), fx.Supply(repo), fx.Provide(newKeeper),
		zqfx.Handle(queue, Placed, newKeeper), fx.Populate(&p, &own))
	send(t, p, queue, "o-1")
	want(t, repo.saved, "o-1")
}

func TestF3NoHandlersIsAnErrorAtTheModulesLine(t *testing.T) {
	t.Parallel()
	got := failed(t, shared(t), zqfx.Module())
	mentions(t, got, "there are no handlers", "group_test.go:", "ProducerOnly()", "ZQ_CONSUME=false")
	got = failed(t, shared(t), zqfx.Module(), zqfx.Sender("orders", Placed))
	mentions(t, got, "there are no handlers")
	got = failed(t, shared(t), zqfx.Module(), zqfx.Queue("orders"), zqfx.HandleFunc("mail", Placed, nothing))
	mentions(t, got, `Queue("orders")`, "no handler", "group_test.go:")
}

func TestF3DeclarationsWithoutTheirModuleAreErrors(t *testing.T) {
	t.Parallel()
	billing := zqfx.Instance("billing")
	cases := map[string]fx.Option{
		`Handle("orders", "order.placed")`: zqfx.HandleFunc("orders", Placed, nothing, billing),
		`HandleRaw("orders")`:              zqfx.HandleRaw("orders", rawNothing, billing),
		`Queue("orders")`:                  zqfx.Queue("orders", billing),
		`Chain(…)`:                         zqfx.Chain(zqfx.PlainChain(nil), billing),
		`Sender("orders", "order.placed")`: zqfx.Sender("orders", Placed, billing),
	}
	for what, declaration := range cases {
		got := failed(t, shared(t), zqfx.Module(), zqfx.HandleFunc("orders", Placed, nothing), declaration)
		mentions(t, got, what, "group_test.go:", `no zqfx.Module(zqfx.Instance("billing"))`)
	}
	mentions(t, failed(t, zqfx.HandleFunc("orders", Placed, nothing)), "no zqfx.Module()", "group_test.go:")
}

func rawNothing() zq.HandlerFunc { return func(context.Context, *zq.Delivery) error { return nil } }
