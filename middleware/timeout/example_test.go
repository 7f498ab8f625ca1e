package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zqueue/zqueue/middleware/timeout"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// Mails have less time than everything else. The first try hangs, the second does not.
func ExampleNew() {
	ctx := context.Background()
	server, err := zqtest.StartEmbedded() // a real program connects to its Redis
	check(err)
	defer server.Close()
	rdb := server.Client()

	bound, err := timeout.New(time.Minute, timeout.ForKind("mail.send", 20*time.Millisecond))
	check(err)
	finished := make(chan struct{})
	send := zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
		if d.Attempt == 1 {
			<-ctx.Done() // a mail server that does not answer
			fmt.Println("timed out:", errors.Is(context.Cause(ctx), zq.ErrTimeout))
			return ctx.Err()
		}
		fmt.Println("before:", d.LastError)
		close(finished)
		return nil
	})
	p, err := zq.NewProducer(rdb, "mail")
	check(err)
	_, err = p.Enqueue(ctx, zq.Message{Kind: "mail.send"})
	check(err)
	consumer, err := zq.NewConsumer(rdb, "mail", zq.Chain{bound}.Then(send), zq.ConsumerConfig{
		RetryDelay: func(*zq.Delivery, error) time.Duration { return 0 },
	})
	check(err)
	check(consumer.Start(ctx))
	<-finished
	check(consumer.Stop(ctx))
	// Output:
	// timed out: true
	// before: zq: maximum run time exceeded (20ms): context deadline exceeded
}

// check keeps the examples to their story; a program returns the error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
