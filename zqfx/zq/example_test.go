package zq_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/effect"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// OrderPlaced is a payload; both ends share it and its kind.
type OrderPlaced struct {
	ID    string `json:"id"`
	Cents int    `json:"cents"`
}

var Placed = zq.NewKind[OrderPlaced]("order.placed")

// Orders of one customer are handled one after the other, also when one of them fails at first.
func Example() {
	ctx := context.Background()
	server, err := zqtest.StartEmbedded() // a real program connects to its Redis
	check(err)
	defer server.Close()
	rdb := server.Client()

	orders, err := zq.NewProducer(rdb, "orders")
	check(err)
	for _, id := range []string{"o-1", "o-2", "o-3"} {
		_, err = Placed.Send(ctx, orders, OrderPlaced{ID: id}, zq.WithKey("customer-7"))
		check(err)
	}

	finished := make(chan struct{})
	handler := Placed.Handle(func(_ context.Context, d *zq.Delivery, o OrderPlaced) error {
		if o.ID == "o-2" && d.Attempt == 1 {
			return zq.RetryAfter(10*time.Millisecond, errors.New("the payment provider is busy"))
		}
		fmt.Println(o.ID, "attempt", d.Attempt)
		if o.ID == "o-3" {
			close(finished)
		}
		return nil
	})
	consumer, err := zq.NewOrderedConsumer(rdb, "orders", handler, zq.OrderedConfig{Concurrency: 16})
	check(err)
	check(consumer.Start(ctx))
	<-finished
	check(consumer.Stop(ctx))
	// Output:
	// o-1 attempt 1
	// o-2 attempt 2
	// o-3 attempt 1
}

// A message whose id is known is a duplicate: a result, not an error.
func ExampleProducer_Enqueue() {
	ctx := context.Background()
	server, err := zqtest.StartEmbedded()
	check(err)
	defer server.Close()

	p, err := zq.NewProducer(server.Client(), "mail", zq.WithDedupeWindow(24*time.Hour))
	check(err)
	for range 2 {
		r, err := p.Enqueue(ctx, zq.Message{ID: "welcome-42", Body: []byte("hello"), Delay: time.Minute})
		check(err)
		fmt.Printf("%s duplicate=%t state=%q\n", r.ID, r.Duplicate, r.State)
	}
	_, err = p.Enqueue(ctx, zq.Message{ID: "welcome-43", Delay: -time.Second})
	fmt.Println(err)
	// Output:
	// welcome-42 duplicate=false state=""
	// welcome-42 duplicate=true state="delayed"
	// zq: message.delay is -1s, want 0 to 87600h0m0s
}

// One queue for several kinds. A renamed kind keeps its old name as an alias while messages are on their way.
func ExampleNewMux() {
	refunded := zq.NewKind[OrderPlaced]("order.refunded", zq.WithAliases("refund"))
	mux, err := zq.NewMux(
		Placed.Handle(func(_ context.Context, _ *zq.Delivery, o OrderPlaced) error {
			fmt.Println("placed", o.ID)
			return nil
		}),
		refunded.Handle(func(_ context.Context, _ *zq.Delivery, o OrderPlaced) error {
			fmt.Println("refunded", o.ID)
			return nil
		}),
	)
	check(err)
	// A handler can be tried without a queue.
	body := []byte(`{"id":"o-9"}`)
	for _, kind := range []string{"order.placed", "refund", "order.lost"} {
		if err := mux.Handle(context.Background(), &zq.Delivery{Kind: kind, Body: body}); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// placed o-9
	// refunded o-9
	// dead: no_handler: no handler for kind "order.lost"
}

// State in Redis and the next step of a pipeline, in the same atomic step as the ack: exactly once.
func ExampleDelivery_Effect() {
	ctx := context.Background()
	server, err := zqtest.StartEmbedded()
	check(err)
	defer server.Close()
	rdb := server.Client()
	p, err := zq.NewProducer(rdb, "orders")
	check(err)
	shipped := zq.NewKind[OrderPlaced]("order.shipped")
	finished := make(chan struct{})
	mux, err := zq.NewMux(
		Placed.Handle(func(_ context.Context, d *zq.Delivery, o OrderPlaced) error {
			next, err := shipped.Message(o, zq.WithID("ship-"+o.ID))
			if err != nil {
				return err
			}
			return errors.Join(d.Effect(effect.IncrBy("revenue", int64(o.Cents))), d.Then(next))
		}),
		shipped.Handle(func(_ context.Context, _ *zq.Delivery, o OrderPlaced) error {
			fmt.Println("shipping", o.ID)
			close(finished)
			return nil
		}),
	)
	check(err)
	_, err = Placed.Send(ctx, p, OrderPlaced{ID: "o-1", Cents: 1999}, zq.WithID("o-1"))
	check(err)
	c, err := zq.NewConsumer(rdb, "orders", mux, zq.ConsumerConfig{})
	check(err)
	check(c.Start(ctx))
	<-finished
	check(c.Stop(ctx))
	fmt.Println(rdb.Get(ctx, zq.EffectKey("orders", "revenue")).Val())
	// Output:
	// shipping o-1
	// 1999
}

// check keeps the examples to their story; a program returns the error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
