// Wired is the service with a background job, on fx:
//
//	go run ./examples/existingservice/wired
package main

import (
	"context"
	"log/slog"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/fx"

	"github.com/zqueue/zqueue/examples/existingservice/internal/demo"
	"github.com/zqueue/zqueue/examples/existingservice/internal/shop"
	"github.com/zqueue/zqueue/middleware"
	"github.com/zqueue/zqueue/middleware/tracing"
	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
)

func main() { demo.Main(run) }

const queue = "receipts"

// ReceiptDue is the job.
var ReceiptDue = zq.NewKind[shop.Order]("receipt.due")

// run is fx.App.Run, but for the story's end.
func run(ctx context.Context, env demo.Env) error {
	app := fx.New(service(env)) //nolint:contextcheck // building does no I/O
	return runUntil(ctx, app)
}

func service(env demo.Env) fx.Option {
	return fx.Options(
		surroundings(env),
		fx.Provide(newShop),
		fx.Invoke(serve),

		// All that the job adds, but for its handler and its sender below.
		zqfx.Module(),
		zqfx.Handle(queue, ReceiptDue, newReceipts),
		zqfx.Sender(queue, ReceiptDue),
		// As the request's child, the job shows in the request's trace.
		zqfx.Chain(middleware.Standard(middleware.Tracing(tracing.AsChild()))),
	)
}

// newReceipts makes the job's handler.
func newReceipts(mail *shop.Mailer) func(context.Context, *zq.Delivery, shop.Order) error {
	return func(ctx context.Context, _ *zq.Delivery, o shop.Order) error {
		return mail.Receipt(ctx, o) // an error is tried again later
	}
}

// newShop sends a job for each order. An order that is placed twice has one.
func newShop(receipts *zqfx.SenderOf[shop.Order]) *shop.Shop {
	return shop.New(func(ctx context.Context, o shop.Order) error {
		_, err := receipts.Send(ctx, o, zq.WithID(o.ID))
		return err
	})
}

// surroundings are what a service on fx has anyway. Its telemetry and logger are zqfx's as well.
func surroundings(env demo.Env) fx.Option {
	return fx.Options(
		fx.NopLogger,
		fx.Supply(env, env.Mail),
		fx.Provide(
			func() trace.TracerProvider { return env.Traces },
			func() *slog.Logger { return env.Log },
			func(lc fx.Lifecycle) (*redis.Client, error) {
				rdb, closeAll, err := env.OpenRedis()
				if err == nil {
					lc.Append(fx.StopHook(closeAll)) // after the queue, which is made from it
				}
				return rdb, err
			},
		),
	)
}
