// Before is the service as it was: who orders waits for the mail server, and hears of it when that is busy.
//
//	go run ./examples/existingservice/before
package main

import (
	"context"

	"github.com/zqueue/zqueue/examples/existingservice/internal/demo"
	"github.com/zqueue/zqueue/examples/existingservice/internal/shop"
	"github.com/zqueue/zqueue/examples/existingservice/internal/web"
)

func main() { demo.Main(run) }

// run serves until ctx ends, and returns when no request is under way.
func run(ctx context.Context, env demo.Env) error {
	orders := shop.New(env.Mail.Receipt)
	return web.Serve(ctx, env.Listener, web.Traced(env.Traces, orders.Handler()))
}
