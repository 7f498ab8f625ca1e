package tracing_test

import (
	"context"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/zqueue/zqueue/middleware/tracing"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// providers are what tracing costs with: nothing behind it, a sampler that says no, and one that says yes to all.
var providers = []struct {
	name string
	make func() trace.TracerProvider
}{
	{"bare", nil},
	{"noop", func() trace.TracerProvider { return noop.NewTracerProvider() }},
	{"unsampled", func() trace.TracerProvider {
		return sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
	}},
	{"sampled", func() trace.TracerProvider { return sdktrace.NewTracerProvider() }},
}

// BenchmarkRun is one run of a handler that does nothing.
func BenchmarkRun(b *testing.B) {
	for _, p := range providers {
		b.Run(p.name, func(b *testing.B) {
			var h zq.Handler = zq.HandlerFunc(nothing)
			if p.make != nil {
				h = benchTracing(b, p.make()).Middleware()(h)
			}
			headers := map[string]string{"traceparent": made}
			b.ReportAllocs()
			for b.Loop() {
				d := zq.Delivery{Queue: "orders", ID: "o-1", Kind: "order.placed", Attempt: 1, MaxAttempts: 8, Headers: headers}
				if err := h.Handle(context.Background(), &d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSend is one call of a producer that sends nothing.
func BenchmarkSend(b *testing.B) {
	for _, p := range providers {
		b.Run(p.name, func(b *testing.B) {
			send := zq.SendFunc(func(context.Context, *zq.Outgoing) ([]zq.Result, error) { return make([]zq.Result, 1), nil })
			if p.make != nil {
				send = benchTracing(b, p.make()).Send()(send)
			}
			b.ReportAllocs()
			for b.Loop() {
				o := &zq.Outgoing{Queue: "orders", Messages: []zq.Message{{ID: "o-1", Kind: "order.placed"}}}
				if _, err := send(context.Background(), o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchTracing(b *testing.B, p trace.TracerProvider) *tracing.Tracing {
	b.Helper()
	tr, err := tracing.New(tracing.WithTracerProvider(p))
	if err != nil {
		b.Fatal(err)
	}
	return tr
}
