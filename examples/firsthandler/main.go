// Firsthandler is the README's first handler, as a program:
//
//	ZQ_REDIS_URL=redis://localhost:6379 go run ./examples/firsthandler
package main

import (
	"context"
	"fmt"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// OrderPlaced is what happened.
type OrderPlaced struct{ ID, Customer string }

// Placed names it in Redis; producers and handlers share it.
var Placed = zq.NewKind[OrderPlaced]("order.placed")

func main() {
	fx.New(
		zqfx.Module(), // Redis is a client in the graph, or ZQ_REDIS_URL
		zqfx.Queue("orders", zqfx.Ordered(), zqfx.Concurrency(16)),
		zqfx.Handle("orders", Placed, NewShipping), // a constructor with any dependencies
		zqfx.Sender("orders", Placed),
		fx.Provide(NewWarehouse),
		fx.Invoke(PlaceAtStart),
	).Run() // until SIGTERM, then drains
}

// NewShipping makes the handler.
func NewShipping(w *Warehouse) func(context.Context, *zq.Delivery, OrderPlaced) error {
	return func(ctx context.Context, _ *zq.Delivery, o OrderPlaced) error {
		return w.Ship(ctx, o.ID) // nil acks; an error is tried again later, and the customer's next order waits
	}
}

// PlaceAtStart sends an order. The customer is the ordering key; the order's id makes a repeat harmless.
func PlaceAtStart(lc fx.Lifecycle, orders *zqfx.SenderOf[OrderPlaced]) {
	lc.Append(fx.StartHook(func(ctx context.Context) error {
		o := OrderPlaced{ID: "o-1", Customer: "c-7"}
		_, err := orders.Send(ctx, o, zq.WithKey(o.Customer), zq.WithID(o.ID))
		return err
	}))
}

// Warehouse ships orders.
type Warehouse struct{}

// NewWarehouse makes one.
func NewWarehouse() *Warehouse { return &Warehouse{} }

// Ship ships an order.
func (*Warehouse) Ship(_ context.Context, order string) error {
	fmt.Println("shipped", order)
	return nil
}
