package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/zqueue/zqueue/middleware"
	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/middleware/retry"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// The standard chain without fx: the stack's parts go to the producer and to the consumer.
func ExampleStandard() {
	ctx := context.Background()
	server, err := zqtest.StartEmbedded() // a real program connects to its Redis
	check(err)
	defer server.Close()
	rdb := server.Client()

	soon := retry.Curve{Initial: time.Millisecond, Max: 10 * time.Millisecond, Multiplier: 2}
	plan := middleware.Standard(
		middleware.Retry(retry.Backoff(soon)),
		middleware.Timeout(time.Minute),
		middleware.Idempotency(idempotency.FromHeader("order")),
	)
	stack, err := plan.Build(middleware.Env{Queue: "orders", Redis: rdb, Logger: slog.New(slog.DiscardHandler)})
	check(err)
	fmt.Println(strings.Join(stack.Names, " > "))

	shipped := make(chan string, 3)
	handler := zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		if d.Attempt == 1 {
			return errors.New("the warehouse is closed")
		}
		shipped <- fmt.Sprint(d.Headers["order"], ", attempt ", d.Attempt)
		return nil
	})
	c, err := zq.NewConsumer(rdb, "orders", stack.Chain.Then(handler), zq.ConsumerConfig{Observers: stack.Observers})
	check(err)
	check(c.Start(ctx))

	p, err := zq.NewProducer(rdb, "orders", zq.WithSendMiddleware(stack.Send...))
	check(err)
	_, err = p.Enqueue(ctx, zq.Message{Headers: map[string]string{"order": "o-1"}})
	check(err)
	fmt.Println("shipped", <-shipped)

	check(c.Stop(ctx)) // then what building started
	if stack.Close != nil {
		check(stack.Close(ctx))
	}
	// Output:
	// recovery > tracing > metrics > logging > deadletter > retry > timeout > idempotency > inner recovery
	// shipped o-1, attempt 2
}

// An order that breaks the chain is refused, with the reason.
func ExampleOrdered() {
	_, err := middleware.Ordered(middleware.Retry(), middleware.DeadLetter(), middleware.InnerRecovery()).
		Build(middleware.Env{Queue: "orders"})
	fmt.Println(err)
	// Output:
	// zq: plan is retry outside deadletter, want deadletter outside retry: what retry gives up on must reach it
}

// check keeps the example to its story; a program returns the error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
