package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/examples/existingservice/internal/demo"
	"github.com/zqueue/zqueue/examples/existingservice/internal/shop"
	"github.com/zqueue/zqueue/middleware"
	"github.com/zqueue/zqueue/middleware/tracing"
	"github.com/zqueue/zqueue/zqfx/zq"
)

const queue = "receipts"

// ReceiptDue is the job.
var ReceiptDue = zq.NewKind[shop.Order]("receipt.due")

// receipts are mailed in the background.
type receipts struct {
	producer *zq.Producer
	consumer *zq.Consumer
	close    func()
}

func startReceipts(ctx context.Context, env demo.Env) (*receipts, error) {
	rdb, closeRedis, err := env.OpenRedis()
	if err != nil {
		return nil, err
	}
	r, err := newReceipts(rdb, env) //nolint:contextcheck // building does no I/O
	if err == nil {
		err = r.consumer.Start(ctx) // it outlives ctx, until stop
	}
	if err != nil {
		closeRedis()
		return nil, err
	}
	r.close = closeRedis
	return r, nil
}

func newReceipts(rdb *redis.Client, env demo.Env) (*receipts, error) {
	// As the request's child, the job shows in the request's trace.
	plan := middleware.Standard(middleware.Tracing(tracing.AsChild()))
	stack, err := plan.Build(middleware.Env{Queue: queue, Redis: rdb, TracerProvider: env.Traces, Logger: env.Log})
	if err != nil {
		return nil, err
	}
	producer, err := zq.NewProducer(rdb, queue, zq.WithSendMiddleware(stack.Send...))
	if err != nil {
		return nil, err
	}
	handler := stack.Chain.Then(ReceiptDue.Handle(func(ctx context.Context, _ *zq.Delivery, o shop.Order) error {
		return env.Mail.Receipt(ctx, o) // an error is tried again later
	}))
	consumer, err := zq.NewConsumer(rdb, queue, handler, zq.ConsumerConfig{Logger: env.Log, Observers: stack.Observers})
	if err != nil {
		return nil, err
	}
	return &receipts{producer: producer, consumer: consumer}, nil
}

// send is what placing an order does about its receipt. An order that is placed twice has one.
func (r *receipts) send(ctx context.Context, o shop.Order) error {
	_, err := ReceiptDue.Send(ctx, r.producer, o, zq.WithID(o.ID))
	return err
}

// until ends with ctx, or when the consumer ends by itself: a service that mails no receipts should not go on. Why it
// ended is what stop returns.
func (r *receipts) until(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() { // ends with the consumer
		<-r.consumer.Done()
		cancel()
	}()
	return ctx
}

// stop lets jobs under way finish. What was not started stays in Redis.
func (r *receipts) stop(ctx context.Context) error {
	defer r.close()
	return errors.Join(r.consumer.Stop(ctx), r.producer.Close(ctx))
}
