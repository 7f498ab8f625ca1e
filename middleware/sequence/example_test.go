package sequence_test

import (
	"context"
	"fmt"

	"github.com/zqueue/zqueue/middleware/sequence"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// The messages of one account arrive in any order, and are handled in that of their numbers.
func ExampleNew() {
	ctx := context.Background()
	server, err := zqtest.StartEmbedded() // a real program connects to its Redis
	check(err)
	defer server.Close()
	rdb := server.Client()

	booked := zq.NewKind[string]("booked")
	p, err := zq.NewProducer(rdb, "accounts")
	check(err)
	for _, n := range []int64{3, 1, 2} {
		_, err = booked.Send(ctx, p, fmt.Sprint("booking ", n), zq.WithKey("account-7"), sequence.Number(n))
		check(err)
	}

	finished := make(chan struct{})
	handler := booked.Handle(func(_ context.Context, d *zq.Delivery, text string) error {
		fmt.Println(text, "attempt", d.Attempt)
		if text == "booking 3" {
			close(finished)
		}
		return nil
	})
	gate, err := sequence.New(rdb, "accounts")
	check(err)
	c, err := zq.NewOrderedConsumer(rdb, "accounts", gate(handler), zq.OrderedConfig{})
	check(err)
	check(c.Start(ctx))
	<-finished
	check(c.Stop(ctx))
	// Output:
	// booking 1 attempt 1
	// booking 2 attempt 1
	// booking 3 attempt 1
}

// check keeps the example to its story; a program returns the error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
