package tracing

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/zqueue/zqueue/middleware/internal/semconv"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// process is the span of a run. A panic passes as it is; the span has ended by then.
func (t *Tracing) process(ctx context.Context, d *zq.Delivery, next zq.Handler) (err error) {
	ctx, span := t.begin(ctx, d)
	whole := false
	defer func() {
		if span.IsRecording() {
			conclude(span, d, run{err: err, cause: context.Cause(ctx), whole: whole})
		}
		span.End()
	}()
	err = next.Handle(ctx, d)
	whole = true
	return err
}

// begin starts the span of a run, and leaves word of it: for the message's next run, and for what this run sends
// with its ack.
func (t *Tracing) begin(ctx context.Context, d *zq.Delivery) (context.Context, trace.Span) {
	ctx, creation := t.origin(ctx, d.Headers)
	opts := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(t.incoming(d)...),
	}
	child := t.cfg.child && creation.IsValid()
	if child {
		ctx = trace.ContextWithRemoteSpanContext(ctx, creation)
	} else {
		opts = append(opts, trace.WithNewRoot())
	}
	var links []trace.Link
	if !child || d.Attempt > 1 || d.Replays > 0 {
		links = link(links, creation, linkKind(semconv.LinkCreation))
	}
	if d.Trace != "" {
		links = link(links, parsed(d.Trace), linkKind(semconv.LinkPrevious))
	}
	ctx, span := t.tracer().Start(ctx, semconv.Process+" "+d.Queue, append(opts, trace.WithLinks(links...))...)
	if word := traceparent(span.SpanContext()); word != "" {
		d.Leave(word)
		for name, value := range t.written(t.capped(ctx)) {
			d.Carry(name, value)
		}
	}
	return ctx, span
}
