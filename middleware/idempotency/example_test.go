package idempotency_test

import (
	"context"
	"fmt"

	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// Charge is a payload. Two messages may ask for the same order to be charged.
type Charge struct {
	Order string `json:"order"`
}

var ChargeKind = zq.NewKind[Charge]("charge")

// An order is charged once, however often that is asked for; who asks again gets the receipt of the first time.
func ExampleNew() {
	ctx := context.Background()
	server, err := zqtest.StartEmbedded() // a real program connects to its Redis
	check(err)
	defer server.Close()
	rdb := server.Client()

	store, err := idempotency.NewRedisStore(rdb, "shop")
	check(err)
	finished := make(chan struct{})
	once, err := idempotency.New(store, idempotency.FromKind(ChargeKind, func(c Charge) string { return c.Order }),
		idempotency.OnDuplicate(func(_ context.Context, d *zq.Delivery, r idempotency.Record) error {
			fmt.Printf("%s: charged before, %s\n", d.ID, r.Result)
			close(finished)
			return nil
		}))
	check(err)
	handler := zq.Chain{once}.Then(ChargeKind.Handle(func(ctx context.Context, d *zq.Delivery, c Charge) error {
		fmt.Printf("%s: charging %s\n", d.ID, c.Order)
		return idempotency.SetResult(ctx, []byte("receipt 17"))
	}))

	p, err := zq.NewProducer(rdb, "payments")
	check(err)
	for _, id := range []string{"from the web", "from a webhook"} {
		_, err = ChargeKind.Send(ctx, p, Charge{Order: "o-1"}, zq.WithID(id), zq.WithKey("o-1"))
		check(err)
	}
	c, err := zq.NewConsumer(rdb, "payments", handler, zq.ConsumerConfig{})
	check(err)
	check(c.Start(ctx))
	<-finished
	check(c.Stop(ctx))
	// Output:
	// from the web: charging o-1
	// from a webhook: charged before, receipt 17
}

// check keeps the example to its story; a program returns the error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
