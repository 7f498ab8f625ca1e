package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/examples/existingservice/internal/demo"
	"github.com/zqueue/zqueue/examples/existingservice/internal/shop"
	"github.com/zqueue/zqueue/examples/existingservice/internal/web"
	"github.com/zqueue/zqueue/zqfx"
)

// serve answers requests. It depends on the worker, so that fx stops HTTP first: whoever is being served can still
// send, and the jobs under way finish after that.
func serve(lc fx.Lifecycle, sd fx.Shutdowner, env demo.Env, s *shop.Shop, health *zqfx.Health, _ *zqfx.Worker) {
	mux := http.NewServeMux()
	mux.Handle("/", web.Traced(env.Traces, s.Handler()))
	mux.HandleFunc("GET /ready", ready(health)) // without a span: probes come often
	server := web.NewServer(mux)
	start := func() {
		go func() { // ends by the stop
			if err := server.Serve(env.Listener); !errors.Is(err, http.ErrServerClosed) {
				env.Log.Error("http", "error", err)
				_ = sd.Shutdown(fx.ExitCode(1)) // an error says that the application stops already
			}
		}()
	}
	lc.Append(fx.StartStopHook(start, func(ctx context.Context) error { return web.Shutdown(ctx, server) }))
}

// ready is for a load balancer: 200 while the queue's consumer works.
func ready(health *zqfx.Health) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := health.Check(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	}
}

// runUntil runs an application until ctx ends, or it shuts itself down.
func runUntil(ctx context.Context, app *fx.App) error {
	starting, cancel := context.WithTimeout(ctx, app.StartTimeout())
	defer cancel()
	if err := app.Start(starting); err != nil {
		return err
	}
	var err error
	select {
	case <-ctx.Done():
	case s := <-app.Wait():
		if s.ExitCode != 0 {
			err = fmt.Errorf("the application ended with exit code %d", s.ExitCode)
		}
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), app.StopTimeout())
	defer cancel()
	return errors.Join(err, app.Stop(stopping))
}
