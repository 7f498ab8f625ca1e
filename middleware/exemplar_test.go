package middleware_test

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/zqueue/zqueue/middleware"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// What is counted of a run once the consumer has decided leads to the run's span.
func TestExemplarsOfARunFindItsSpan(t *testing.T) {
	t.Parallel()
	rdb, queue := zqtest.Shared(t).Client(), zqtest.Queue(t)
	spans, reader := tracetest.NewSpanRecorder(), metric.NewManualReader()
	stack, err := middleware.Standard().Build(middleware.Env{
		Queue: queue, Redis: rdb, TracerProvider: trace.NewTracerProvider(trace.WithSpanProcessor(spans)),
		MeterProvider: metric.NewMeterProvider(metric.WithReader(reader)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan struct{}, 1)
	handler := stack.Chain.Then(zq.HandlerFunc(func(context.Context, *zq.Delivery) error {
		ran <- struct{}{}
		return nil
	}))
	c, err := zq.NewConsumer(rdb, queue, handler, zq.ConsumerConfig{Observers: stack.Observers})
	if err != nil {
		t.Fatal(err)
	}
	p, err := zq.NewProducer(rdb, queue)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Enqueue(t.Context(), zq.Message{ID: "m"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	zqtest.Wait(t, ran, limit)
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	var run [16]byte
	for _, s := range spans.Ended() {
		if s.Name() == "process "+queue {
			run = s.SpanContext().TraceID()
		}
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"messaging.process.duration", "messaging.zq.message.wait"} {
		if got := exemplars(all, name); len(got) != 1 || [16]byte(got[0].TraceID) != run {
			t.Errorf("%s has the exemplars %+v, want one of the trace %x", name, got, run)
		}
	}
}

// exemplars are those of a histogram.
func exemplars(all metricdata.ResourceMetrics, name string) (found []metricdata.Exemplar[float64]) {
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if data, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == name {
				for _, p := range data.DataPoints {
					found = append(found, p.Exemplars...)
				}
			}
		}
	}
	return found
}
