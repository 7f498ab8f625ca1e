package deadletter_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/zqueue/zqueue/middleware/deadletter"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// Orders that look like fraud go to a queue of their own, with their story; all other dead letters stay.
func ExampleNew() {
	ctx := context.Background()
	server, err := zqtest.StartEmbedded() // a real program connects to its Redis
	check(err)
	defer server.Close()
	rdb := server.Client()

	review, err := zq.NewProducer(rdb, "review")
	check(err)
	letters, err := deadletter.New(
		deadletter.Route("fraud", deadletter.ToQueue(review, "review")),
		deadletter.OnDead(func(_ context.Context, d *zq.Delivery, l deadletter.Letter) {
			fmt.Printf("%s died: %s, to %q\n", d.ID, l.Reason, l.To)
		}))
	check(err)
	orders := zq.Chain{letters}.Then(zq.HandlerFunc(func(context.Context, *zq.Delivery) error {
		return zq.Dead("fraud", errors.New("ten cards in a minute"))
	}))
	finished := make(chan struct{})
	reviews := zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		fmt.Printf("review %s: %s\n", d.Headers[deadletter.HeaderID], d.Headers[deadletter.HeaderError])
		close(finished)
		return nil
	})

	p, err := zq.NewProducer(rdb, "orders")
	check(err)
	_, err = p.Enqueue(ctx, zq.Message{ID: "o-1"})
	check(err)
	for queue, h := range map[string]zq.Handler{"orders": orders, "review": reviews} {
		c, err := zq.NewConsumer(rdb, queue, h, zq.ConsumerConfig{})
		check(err)
		check(c.Start(ctx))
		defer func() { check(c.Stop(ctx)) }()
	}
	<-finished
	// Output:
	// o-1 died: fraud, to "review"
	// review o-1: ten cards in a minute
}

// What died because a partner was down comes back by itself, three times at most.
func ExampleRequeue() {
	ctx := context.Background()
	server, err := zqtest.StartEmbedded()
	check(err)
	defer server.Close()
	rdb := server.Client()

	died, finished := make(chan struct{}), make(chan struct{})
	c, err := zq.NewConsumer(rdb, "orders", zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		fmt.Println("replays:", d.Replays)
		close(died)
		return zq.Dead("partner_down", errors.New("connection refused"))
	}), zq.ConsumerConfig{})
	check(err)
	check(c.Start(ctx))
	p, err := zq.NewProducer(rdb, "orders")
	check(err)
	_, err = p.Enqueue(ctx, zq.Message{ID: "o-1"})
	check(err)
	<-died
	check(c.Stop(ctx)) // so that the death is recorded; a real program need not

	inspector, err := zq.NewInspector(rdb, "orders")
	check(err)
	requeue, err := deadletter.NewRequeue(inspector, deadletter.Reasons("partner_down"), deadletter.MaxReplays(3))
	check(err)
	report, err := requeue.Once(ctx) // a real program calls Run
	check(err)
	fmt.Println("replayed:", report.IDs)

	c, err = zq.NewConsumer(rdb, "orders", zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		fmt.Println("replays:", d.Replays)
		close(finished)
		return nil
	}), zq.ConsumerConfig{})
	check(err)
	check(c.Start(ctx))
	<-finished
	check(c.Stop(ctx))
	// Output:
	// replays: 0
	// replayed: [o-1]
	// replays: 1
}

// check keeps the examples to their story; a program returns the error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
