package tracing_test

import (
	"context"
	"errors"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/zqueue/zqueue/middleware/tracing"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// All faults are told at once.
func TestOptionFaults(t *testing.T) {
	t.Parallel()
	_, err := tracing.New(tracing.WithPropagator(nil), tracing.WithBaggage(0), tracing.WithBaggage(tracing.MaxBaggage+1))
	if !errors.Is(err, zq.ErrInvalid) {
		t.Fatalf("got %v", err)
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 3 {
		t.Errorf("got %v, want three faults", err)
	}
	if _, err := tracing.New(nil, tracing.WithTracerProvider(nil), tracing.WithBaggage(tracing.MaxBaggage), tracing.WithBaggage(1)); err != nil {
		t.Errorf("good options: %v", err)
	}
}

// The global provider is asked for at the first span. This is the one test that sets it, so it is not parallel.
func TestGlobalProvider(t *testing.T) {
	before := otel.GetTracerProvider()
	defer otel.SetTracerProvider(before)
	otel.SetTracerProvider(noop.NewTracerProvider())
	tr, err := tracing.New()
	if err != nil {
		t.Fatal(err)
	}
	recorder := tracetest.NewSpanRecorder()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))
	if err := tr.Middleware()(zq.HandlerFunc(nothing)).Handle(t.Context(), &zq.Delivery{Queue: "orders"}); err != nil {
		t.Fatal(err)
	}
	if n := len(recorder.Ended()); n != 1 {
		t.Errorf("%d spans at the provider that was set after New", n)
	}
}

// Without a provider nothing is written into messages, and all works.
func TestNoProvider(t *testing.T) {
	t.Parallel()
	k := newKit(t, tracing.WithTracerProvider(noop.NewTracerProvider()))
	for _, batch := range []bool{false, true} {
		o := &zq.Outgoing{Queue: "orders", Batch: batch, Messages: make([]zq.Message, 1)}
		if _, err := k.send(context.Background(), o, accepted); err != nil || len(o.Messages[0].Headers) != 0 {
			t.Errorf("batch %t: headers %v, %v", batch, o.Messages[0].Headers, err)
		}
	}
	if err := k.run(t.Context(), &zq.Delivery{Queue: "orders"}, nothing); err != nil {
		t.Error(err)
	}
	k.Observer().Claimed(zq.Claimed{Messages: make([]*zq.Delivery, 1)})
}

// A propagator of one's own is used both ways; what runs leave for each other stays W3C's.
func TestOwnPropagator(t *testing.T) {
	t.Parallel()
	k := newKit(t, tracing.WithPropagator(propagation.TraceContext{}))
	if sent := k.sendHeaders(withBaggage(t, "1"), nil); sent["baggage"] != "" || sent["traceparent"] == "" {
		t.Errorf("headers %v", sent)
	}
}
