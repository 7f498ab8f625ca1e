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

// twoWorlds is what an application with two instances has; both have the queue orders of one payload type.
type twoWorlds struct {
	fx.In
	Shop            *zqfx.SenderOf[OrderPlaced]
	Billing         *zqfx.SenderOf[OrderPlaced] `name:"billing"`
	Refunds         *zqfx.SenderOf[OrderPlaced] `name:"refunds"`
	ShopProducers   *zqfx.Producers
	BillProducers   *zqfx.Producers `name:"billing"`
	BillProducer    *zq.Producer    `name:"billing.orders"`
	BillInspector   *zq.Inspector   `name:"billing.orders"`
	ShopProducer    *zq.Producer    `name:"orders"`
	ShopInspector   *zq.Inspector   `name:"orders"`
	Health          *zqfx.Health
	BillingHealth   *zqfx.Health `name:"billing"`
	Worker          *zqfx.Worker
	BillingWorker   *zqfx.Worker `name:"billing"`
	BillingSettings zqfx.Config  `name:"billing"`
}

func TestF8TwoInstancesWithOnePayloadTypeHaveARedisEach(t *testing.T) {
	t.Parallel()
	server := zqtest.Redis(t)
	one, two := database(server, 1), database(server, 2)
	shopRun, shopRan := reporting()
	billRun, billRan := reporting()
	billing := zqfx.Instance("billing")
	var w twoWorlds
	started(t, client(one), fx.Supply(fx.Annotated{Name: "billing", Target: two}),
		zqfx.Module(), zqfx.Queue("orders"), zqfx.HandleFunc("orders", Placed, shopRun), zqfx.Sender("orders", Placed), plain(),
		zqfx.Module(billing), zqfx.Queue("orders", billing), zqfx.HandleFunc("orders", Placed, billRun, billing),
		zqfx.Sender("orders", Placed, billing), zqfx.Sender("refunds", Placed, billing, zqfx.Named("refunds")),
		zqfx.Chain(zqfx.PlainChain(nil), billing), fx.Invoke(func(all twoWorlds) { w = all }))

	for _, s := range []struct {
		sender *zqfx.SenderOf[OrderPlaced]
		id     string
		ran    <-chan string
	}{{w.Shop, "shop-1", shopRan}, {w.Billing, "bill-1", billRan}} {
		if _, err := s.sender.Send(t.Context(), OrderPlaced{ID: s.id}); err != nil {
			t.Fatal(err)
		}
		want(t, s.ran, s.id)
	}
	send(t, w.ShopProducers, "orders", "shop-2")
	send(t, w.BillProducers, "orders", "bill-2")
	want(t, shopRan, "shop-2")
	want(t, billRan, "bill-2")
	if _, err := w.Refunds.Send(t.Context(), OrderPlaced{ID: "r-1"}); err != nil {
		t.Fatal(err)
	}
	if here, there := pending(t, two, "refunds"), pending(t, one, "refunds"); here != 1 || there != 0 {
		t.Errorf("%d refunds in billing's database and %d in the other", here, there)
	}
	for name, h := range map[string]*zqfx.Health{"default": w.Health, "billing": w.BillingHealth} {
		if err := h.Check(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	counts := func(i *zq.Inspector) int64 {
		c, err := i.Counters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return c.Enqueued
	}
	if shop, bill := counts(w.ShopInspector), counts(w.BillInspector); shop != 2 || bill != 2 {
		t.Errorf("%d enqueued in one instance and %d in the other, want 2 each", shop, bill)
	}
	if p, err := w.BillProducers.For("orders"); err != nil || p != w.BillProducer || p == w.ShopProducer {
		t.Errorf("billing's producer is not the one by name (%v)", err)
	}
	if got := w.BillingWorker.Queues(); len(got) != 1 || w.BillingWorker == w.Worker {
		t.Errorf("billing consumes %q", got)
	}
}

// A second Module of an instance, or a second Queue, is refused in words of this package, with the line.
func TestF8WhatIsThereOnceIsRefusedTwice(t *testing.T) {
	t.Parallel()
	module, queue, b, x := zqfx.Module(), zqfx.Queue("orders"), zqfx.Instance("b"), zqfx.Named("b")
	const orders = `oneQueueOfAName[name="orders"]`
	cases := map[string]struct {
		opts []fx.Option
		want string
	}{
		"module as one value":    {[]fx.Option{module, module}, "moduleOfInstance"},
		"module":                 {[]fx.Option{zqfx.Module(), zqfx.Module()}, "moduleOfInstance"},
		"module in a module":     {[]fx.Option{zqfx.Module(), fx.Module("shop", zqfx.Module())}, "moduleOfInstance"},
		"module of an instance":  {[]fx.Option{zqfx.Module(b), zqfx.Module(b)}, `moduleOfInstance[name="b"]`},
		"queue as one value":     {[]fx.Option{zqfx.Module(), queue, queue}, orders},
		"queue":                  {[]fx.Option{zqfx.Module(), zqfx.Queue("orders"), zqfx.Queue("orders")}, orders},
		"queue of an instance":   {[]fx.Option{zqfx.Queue("q", b), zqfx.Queue("q", b)}, `oneQueueOfAName[name="b.q"]`},
		"sender without a name":  {[]fx.Option{zqfx.Sender("a", Placed), zqfx.Sender("b", Placed)}, "oneSenderUnlessNamed"},
		"sender with one name":   {[]fx.Option{zqfx.Sender("a", Placed, x), zqfx.Sender("b", Placed, x)}, `[name="b"]`},
		"sender and an instance": {[]fx.Option{zqfx.Sender("a", Placed, x), zqfx.Sender("b", Placed, b)}, `[name="b"]`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := failed(t, append(c.opts, shared(t), zqfx.HandleFunc("orders", Placed, nothing))...)
			mentions(t, got, c.want, "already provided", "instance_test.go:")
			if strings.Contains(got, "makeFuncStub") {
				t.Errorf("the error names a stub of reflect:\n%s", got)
			}
		})
	}
}

func TestInstanceNamesThatCannotStandInATagAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"zq", "test", "TEST", `a"b`, "a b", "a.b", "ä", "\xff", strings.Repeat("a", 65)} {
		for what, option := range map[string]fx.Option{
			"Module()":                      zqfx.Module(zqfx.Instance(name)),
			`Queue("q")`:                    zqfx.Queue("q", zqfx.Instance(name)),
			`Handle("q", "order.placed")`:   zqfx.HandleFunc("q", Placed, nothing, zqfx.Instance(name)),
			`HandleRaw("q")`:                zqfx.HandleRaw("q", rawNothing, zqfx.Instance(name)),
			`Chain(…)`:                      zqfx.Chain(zqfx.PlainChain(nil), zqfx.Instance(name)),
			`Sender("q", "order.placed")`:   zqfx.Sender("q", Placed, zqfx.Instance(name)),
			`Chain(…, ForQueue("q"))`:       zqfx.Chain(zqfx.PlainChain(nil), zqfx.ForQueue("q"), zqfx.Instance(name)),
			`Sender("other", "order.placed`: zqfx.Sender("other", Placed, zqfx.Instance(name), zqfx.Named("n")),
		} {
			mentions(t, failed(t, option), what, "instance is ", "instance_test.go:")
		}
	}
	for _, name := range []string{"a", "A-b_9", strings.Repeat("a", 64)} {
		rdb := fx.Supply(fx.Annotate(zqtest.Shared(t).Client(), fx.ResultTags(`name:"`+name+`"`)))
		built(t, rdb, zqfx.Module(zqfx.Instance(name), zqfx.ProducerOnly()))
	}
}

// An instance does not take what is the default one's, nor the other way round.
func TestInstancesAreStrangersToEachOther(t *testing.T) {
	t.Parallel()
	billing := zqfx.Instance("billing")
	named := fx.Supply(fx.Annotated{Name: "billing", Target: zqtest.Shared(t).Client()})
	got := failed(t, named, shared(t), zqfx.Module(), zqfx.HandleFunc("orders", Placed, nothing), zqfx.Module(billing))
	mentions(t, got, "instance billing cannot start", "no handlers")
	got = failed(t, named, zqfx.Module(billing), zqfx.HandleFunc("orders", Placed, nothing, billing),
		zqfx.Chain(middlewareOf(nil), billing, zqfx.ForQueue("mail")))
	mentions(t, got, `ForQueue("mail")`, "orders")
	built(t, named, shared(t), zqfx.Module(), zqfx.HandleFunc("orders", Placed, nothing), zqfx.Module(billing),
		zqfx.HandleFunc("orders", Placed, nothing, billing)) // one kind in a queue of the same name: two queues
}

// middlewareOf is a chain of one middleware that calls fn before the handler.
func middlewareOf(fn func(d *zq.Delivery)) zqfx.Builder {
	return zqfx.PlainChain(zq.Chain{func(next zq.Handler) zq.Handler {
		return zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
			fn(d)
			return next.Handle(ctx, d)
		})
	}})
}
