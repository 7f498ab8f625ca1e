// Withoutfx is the README's first handler without fx, as a program:
//
//	ZQ_REDIS_URL=redis://localhost:6379 go run ./examples/firsthandler/withoutfx
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// OrderPlaced is what happened.
type OrderPlaced struct{ ID, Customer string }

// Placed names it in Redis; producers and handlers share it.
var Placed = zq.NewKind[OrderPlaced]("order.placed")

func chain(rdb redis.UniversalClient) (middleware.Stack, error) {
	return middleware.Standard().Build(middleware.Env{Queue: "orders", Redis: rdb})
}

func run(ctx context.Context, rdb redis.UniversalClient, stack middleware.Stack) error {
	orders, err := zq.NewProducer(rdb, "orders", zq.WithSendMiddleware(stack.Send...))
	if err != nil {
		return err
	}
	handler := stack.Chain.Then(Placed.Handle(func(ctx context.Context, _ *zq.Delivery, o OrderPlaced) error {
		return ship(ctx, o)
	}))
	c, err := zq.NewOrderedConsumer(rdb, "orders", handler, zq.OrderedConfig{Concurrency: 16, Observers: stack.Observers})
	if err != nil {
		return err
	}
	o := OrderPlaced{ID: "o-1", Customer: "c-7"}
	if _, err = Placed.Send(ctx, orders, o, zq.WithKey(o.Customer), zq.WithID(o.ID)); err != nil {
		return err
	}
	return c.Run(ctx) // until ctx ends, then drains
}

func main() {
	if err := start(); err != nil {
		slog.Error("withoutfx", "error", err)
		os.Exit(1)
	}
}

func start() error {
	address := os.Getenv("ZQ_REDIS_URL")
	if address == "" {
		return errors.New("set ZQ_REDIS_URL")
	}
	options, err := redis.ParseURL(address)
	if err != nil {
		return errors.New("ZQ_REDIS_URL is no URL of a Redis") // the error would quote its password
	}
	rdb := redis.NewClient(options)
	stack, err := chain(rdb)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return errors.Join(run(ctx, rdb, stack), rdb.Close())
}

func ship(_ context.Context, o OrderPlaced) error {
	fmt.Println("shipped", o.ID)
	return nil
}
