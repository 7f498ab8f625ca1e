package tracing

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/zqueue/zqueue/middleware/internal/semconv"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// Tracing makes spans for any number of producers and consumers. It is safe for concurrent use and needs no
// closing.
type Tracing struct {
	cfg    *config
	tracer func() trace.Tracer
}

// New makes the tracing of this process. It lists all that is wrong with its options, as *zq.InvalidError, does no
// I/O and starts nothing.
func New(opts ...Option) (*Tracing, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	// At the first span, not now: an application that sets the global provider while it starts is not too late.
	tracer := sync.OnceValue(func() trace.Tracer {
		p := cfg.provider
		if p == nil {
			p = otel.GetTracerProvider()
		}
		return p.Tracer(semconv.TracingScope, trace.WithSchemaURL(semconv.SchemaURL))
	})
	return &Tracing{cfg: cfg, tracer: tracer}, nil
}

// Middleware makes a span of each run. It belongs outside whatever decides on errors, so that the span sees what
// becomes of the message.
func (t *Tracing) Middleware() zq.Middleware {
	return func(next zq.Handler) zq.Handler {
		return zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error { return t.process(ctx, d, next) })
	}
}

// Send makes a span of each call of a producer, and puts its context into the messages.
func (t *Tracing) Send() zq.SendMiddleware {
	return func(next zq.SendFunc) zq.SendFunc {
		return func(ctx context.Context, o *zq.Outgoing) ([]zq.Result, error) {
			switch {
			case len(o.Messages) == 0:
				return next(ctx, o)
			case !o.Batch:
				return t.sendOne(ctx, o, next)
			case t.cfg.create:
				return t.sendCreated(ctx, o, next)
			}
			return t.sendBatch(ctx, o, next)
		}
	}
}

// Observer makes the spans of claims and settlements, if they are switched on. It belongs into a consumer's config.
func (t *Tracing) Observer() zq.Observer {
	if !t.cfg.batches {
		return zq.Observer{}
	}
	return zq.Observer{Claimed: t.claimed, Settled: t.settled}
}

// Idempotency says on the active span what became of a message that had been seen before: outcome is a word such
// as "skipped", original the id of the message that did the work, "" if unknown. Its status stays as it is.
func Idempotency(ctx context.Context, outcome, original string) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.String(semconv.IdempotencyOutcomeKey, valid(outcome)))
	if original != "" {
		span.SetAttributes(attribute.String(semconv.OriginalMessageIDKey, valid(original)))
	}
}

// fail marks a span. The class of an error is for queries, its text for a reader.
func fail(span trace.Span, class, text string) {
	span.SetAttributes(attribute.String(semconv.ErrorTypeKey, class))
	span.SetStatus(codes.Error, text)
}
