package zqfx

import (
	"log/slog"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// surroundings are what the application may or may not have in its graph.
type surroundings struct {
	log    *slog.Logger
	tracer trace.TracerProvider // nil: the global one
	meter  metric.MeterProvider // nil: the global one
}

func newSurroundings(i instance, log *slog.Logger, t trace.TracerProvider, m metric.MeterProvider) surroundings {
	if log == nil {
		log = slog.Default()
	}
	if i != "" {
		log = log.With("instance", string(i))
	}
	return surroundings{log: log, tracer: t, meter: m}
}
