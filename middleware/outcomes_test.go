package middleware_test

import (
	"context"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/zqueue/zqueue/middleware"
	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// An application's own OnOutcome does not silence the span's and the metrics'.
func TestOutcomesReachTheSpanBesideTheApplication(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	provider := trace.NewTracerProvider(trace.WithSyncer(spans))
	queue := zqtest.Queue(t)
	var mine []idempotency.Outcome
	own := idempotency.OnOutcome(func(_ context.Context, _ *zq.Delivery, o idempotency.Outcome, _ idempotency.Record) {
		mine = append(mine, o)
	})
	stack, err := middleware.Standard(middleware.Idempotency(idempotency.FromID(), own)).
		Build(middleware.Env{Queue: queue, Redis: zqtest.Shared(t).Client(), TracerProvider: provider})
	if err != nil {
		t.Fatal(err)
	}
	run := stack.Chain.Then(zq.HandlerFunc(func(context.Context, *zq.Delivery) error { return nil }))
	for range 2 {
		d := &zq.Delivery{ID: "a", Queue: queue, Sequence: 1, Attempt: 1}
		if err := run.Handle(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	if want := []idempotency.Outcome{idempotency.Ran, idempotency.Skipped}; !slices.Equal(mine, want) {
		t.Errorf("the application heard %q, want %q", mine, want)
	}
	last := spans.GetSpans()[1]
	if !slices.Contains(last.Attributes, attribute.String("messaging.zq.idempotency.outcome", "skipped")) ||
		!slices.Contains(last.Attributes, attribute.String("messaging.zq.original_message_id", "a")) {
		t.Errorf("the skip's span has %v", last.Attributes)
	}
}
