package middleware

import (
	"context"

	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/middleware/logging"
	"github.com/zqueue/zqueue/middleware/metrics"
	"github.com/zqueue/zqueue/middleware/tracing"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// outcomeFunc is told what idempotency did with a message, and in the place of which other one, "" if of none.
type outcomeFunc func(ctx context.Context, d *zq.Delivery, o idempotency.Outcome, original string)

// Tracing makes spans, as tracing.New with Env.TracerProvider. What idempotency does shows on them.
func Tracing(opts ...tracing.Option) Layer {
	return Layer{role: RoleTracing, build: func(at *site) (part, error) {
		t, err := tracing.New(append([]tracing.Option{tracing.WithTracerProvider(at.TracerProvider)}, opts...)...)
		if err != nil {
			return part{}, err
		}
		at.outcomes = append(at.outcomes,
			func(ctx context.Context, _ *zq.Delivery, o idempotency.Outcome, original string) {
				tracing.Idempotency(ctx, string(o), original)
			})
		observer := t.Observer()
		return part{mw: t.Middleware(), send: t.Send(), observer: &observer}, nil
	}}
}

// Metrics counts and measures, as metrics.New with Env.MeterProvider. What idempotency does is counted too. With
// Env.Inspector the queue is watched, until Stack.Close: depth, and the age of its oldest message.
func Metrics(opts ...metrics.Option) Layer {
	return Layer{role: RoleMetrics, build: func(at *site) (part, error) {
		m, err := metrics.New(append([]metrics.Option{metrics.WithMeterProvider(at.MeterProvider)}, opts...)...)
		if err != nil {
			return part{}, err
		}
		at.outcomes = append(at.outcomes,
			func(ctx context.Context, d *zq.Delivery, o idempotency.Outcome, _ string) {
				m.Idempotency(ctx, d.Queue, string(o))
			})
		observer := m.Observer()
		made := part{mw: m.Middleware(), send: m.Send(), observer: &observer}
		if look := at.Inspector; look != nil {
			queue := at.Queue
			made.open = func() (closer, error) {
				end, err := m.Watch(queue, look)
				return end, err
			}
		}
		return made, nil
	}}
}

// Logging writes a line for each run, as logging.New with Env.Logger.
func Logging(opts ...logging.Option) Layer {
	return Layer{role: RoleLogging, build: func(at *site) (part, error) {
		mw, err := logging.New(append([]logging.Option{logging.Logger(at.Logger)}, opts...)...)
		return part{mw: mw}, err
	}}
}
