package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// telemetry is where spans and metrics go.
type telemetry struct {
	traces   *sdktrace.TracerProvider
	meters   *sdkmetric.MeterProvider
	registry *prometheus.Registry
	recorder *tracetest.SpanRecorder // for the tree that is printed; a service has none
}

func newTelemetry(ctx context.Context, log io.Writer) (*telemetry, error) {
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(semconv.ServiceName("payments")),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("resource: %w", err)
	}
	t := &telemetry{registry: prometheus.NewRegistry(), recorder: tracetest.NewSpanRecorder()}
	// Scope labels would stand on each line of the page.
	reader, err := otelprom.New(otelprom.WithRegisterer(t.registry), otelprom.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	t.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(about))
	exporter, err := newExporter(ctx, log)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	t.traces = sdktrace.NewTracerProvider(sdktrace.WithResource(about),
		sdktrace.WithBatcher(exporter), sdktrace.WithSpanProcessor(t.recorder))
	return t, nil
}

// newExporter sends spans to a collector if there is one. Its address and all else is in the variables that
// OpenTelemetry defines, so nothing is passed on here; http:// as the scheme means no TLS.
func newExporter(ctx context.Context, log io.Writer) (sdktrace.SpanExporter, error) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
		if os.Getenv(name) != "" {
			return otlptracegrpc.New(ctx)
		}
	}
	return stdouttrace.New(stdouttrace.WithWriter(log))
}

// shutdown sends what is left.
func (t *telemetry) shutdown(ctx context.Context) error {
	if err := errors.Join(t.traces.Shutdown(ctx), t.meters.Shutdown(ctx)); err != nil {
		return fmt.Errorf("the last telemetry: %w", err)
	}
	return nil
}
