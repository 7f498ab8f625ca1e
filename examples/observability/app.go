package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/fx"

	"github.com/zqueue/zqueue/middleware"
	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/middleware/retry"
	"github.com/zqueue/zqueue/middleware/tracing"
	"github.com/zqueue/zqueue/zqfx"
)

// The queues.
const (
	payments = "payments"
	invoices = "invoices"
)

// application is the service. Its telemetry is what the graph has.
func application(t *telemetry, rdb *redis.Client, l net.Listener, log *slog.Logger) fx.Option {
	return fx.Options(
		fx.NopLogger,
		fx.Supply(rdb, log, t.registry, fx.Annotate(l, fx.As(new(net.Listener)))),
		fx.Provide(
			func() trace.TracerProvider { return t.traces },
			func() metric.MeterProvider { return t.meters },
		),
		fx.Module("metrics", fx.Invoke(serveMetrics)), // ahead of the queues, so that it answers until they have drained
		zqfx.Module(),
		zqfx.Chain(chain()),
		zqfx.Handle(payments, PaymentDue, newCharge),
		zqfx.Sender(payments, PaymentDue),
		zqfx.HandleFunc(invoices, InvoiceDue, mailInvoice),
		zqfx.Sender(invoices, InvoiceDue),
	)
}

// chain is the standard one. A job belongs to the trace of whoever sent it, an order is charged once, and the next
// attempt comes sooner than in a real shop.
func chain() middleware.Plan {
	return middleware.Standard(
		middleware.Tracing(tracing.AsChild()),
		middleware.Idempotency(idempotency.FromKind(PaymentDue, func(p Payment) string { return p.Order })),
		middleware.Retry(retry.Backoff(retry.Curve{Initial: 50 * time.Millisecond})),
	)
}

// headerTime bounds how long a scraper may take to ask.
const headerTime = 5 * time.Second

// serveMetrics serves the page for Prometheus. With OpenMetrics it has exemplars: a bucket of slow sends names a trace.
func serveMetrics(lc fx.Lifecycle, l net.Listener, registry *prometheus.Registry, log *slog.Logger) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: headerTime}
	start := func() {
		go func() { // ends by the stop
			if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				log.Error("metrics page", "error", err)
			}
		}()
	}
	lc.Append(fx.StartStopHook(start, func(ctx context.Context) error { return server.Shutdown(ctx) }))
}
