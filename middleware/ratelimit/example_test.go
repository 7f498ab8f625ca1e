package ratelimit_test

import (
	"context"
	"fmt"

	"github.com/zqueue/zqueue/middleware/ratelimit"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// Each customer is sent ten mails a second at most, however many processes send them, and two at once.
func ExampleNew() {
	ctx := context.Background()
	server, err := zqtest.StartEmbedded() // a real program connects to its Redis
	check(err)
	defer server.Close()
	rdb := server.Client()

	limiter, err := ratelimit.Shared(rdb, "mail", 10, 2)
	check(err)
	limited, err := ratelimit.New(limiter, ratelimit.PerKey())
	check(err)

	finished := make(chan struct{})
	handler := limited(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		fmt.Println(d.ID, "attempt", d.Attempt)
		if d.ID == "news 4" {
			close(finished)
		}
		return nil
	}))
	p, err := zq.NewProducer(rdb, "mail")
	check(err)
	for n := range 4 {
		_, err = p.Enqueue(ctx, zq.Message{ID: fmt.Sprint("news ", n+1), Key: "customer-7"})
		check(err)
	}
	c, err := zq.NewOrderedConsumer(rdb, "mail", handler, zq.OrderedConfig{})
	check(err)
	check(c.Start(ctx))
	<-finished
	check(c.Stop(ctx))
	// Output:
	// news 1 attempt 1
	// news 2 attempt 1
	// news 3 attempt 1
	// news 4 attempt 1
}

// What a local limiter tells messages: two at once, then one each half second.
func ExampleLocal() {
	limiter, err := ratelimit.Local(2, 2)
	check(err)
	for _, id := range []string{"a", "b", "c"} {
		wait, err := limiter.Reserve(context.Background(), "mail", id)
		check(err)
		fmt.Println(id, "waits:", wait > 0)
	}
	_, err = ratelimit.Local(-1, 0, ratelimit.MaxNames(0))
	fmt.Println(err)
	// Output:
	// a waits: false
	// b waits: false
	// c waits: true
	// zq: ratelimit.Local limit is -1, want 1.16e-05 to 100000 a second
	// zq: ratelimit.Local burst is 0, want 1 to 1000000
	// zq: ratelimit.MaxNames is 0, want 1 to 1000000
}

// check keeps the example to its story; a program returns the error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
