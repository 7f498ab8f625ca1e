// Plain is the service with a background job, put together by hand: who orders has the answer at once, and the receipt
// is mailed when the mail server takes it.
//
//	go run ./examples/existingservice/plain
package main

import (
	"context"
	"errors"

	"github.com/zqueue/zqueue/examples/existingservice/internal/demo"
	"github.com/zqueue/zqueue/examples/existingservice/internal/shop"
	"github.com/zqueue/zqueue/examples/existingservice/internal/web"
)

func main() { demo.Main(run) }

// run serves until ctx ends. Then HTTP stops first, so that whoever is being served can still send; the jobs under way
// finish after that.
func run(ctx context.Context, env demo.Env) error {
	receipts, err := startReceipts(ctx, env)
	if err != nil {
		return err
	}
	orders := shop.New(receipts.send)
	err = web.Serve(receipts.until(ctx), env.Listener, web.Traced(env.Traces, orders.Handler()))
	return errors.Join(err, receipts.stop(context.WithoutCancel(ctx)))
}
