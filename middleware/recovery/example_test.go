package recovery_test

import (
	"context"
	"fmt"

	"github.com/zqueue/zqueue/middleware/recovery"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// A handler that panics on one message goes on with the next; the message lies with the dead letters.
func ExampleNew() {
	ctx := context.Background()
	server, err := zqtest.StartEmbedded() // a real program connects to its Redis
	check(err)
	defer server.Close()
	rdb := server.Client()

	recovers, err := recovery.New(
		recovery.AsDead("panic"),
		recovery.OnPanic(func(_ context.Context, d *zq.Delivery, p *zq.PanicError) {
			fmt.Println(d.ID, "panicked:", p.Value) // p.Stack says where
		}),
	)
	check(err)
	finished := make(chan struct{})
	share := zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		fmt.Println(d.ID, "shares of", 100/len(d.Body))
		close(finished)
		return nil
	})
	p, err := zq.NewProducer(rdb, "shares")
	check(err)
	for _, m := range []zq.Message{{ID: "empty", Key: "k"}, {ID: "four", Key: "k", Body: []byte("abcd")}} {
		_, err = p.Enqueue(ctx, m)
		check(err)
	}
	consumer, err := zq.NewOrderedConsumer(rdb, "shares", zq.Chain{recovers}.Then(share), zq.OrderedConfig{})
	check(err)
	check(consumer.Start(ctx))
	<-finished
	check(consumer.Stop(ctx))

	look, err := zq.NewInspector(rdb, "shares")
	check(err)
	letter, err := look.DeadLetter(ctx, "empty")
	check(err)
	fmt.Println("dead letter:", letter.Reason)
	// Output:
	// empty panicked: runtime error: integer divide by zero
	// four shares of 25
	// dead letter: panic
}

// check keeps the examples to their story; a program returns the error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
