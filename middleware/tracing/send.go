package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/zqueue/zqueue/middleware/internal/semconv"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// sendOne is one span, whose context goes with the message.
func (t *Tracing) sendOne(ctx context.Context, o *zq.Outgoing, next zq.SendFunc) (results []zq.Result, err error) {
	m := &o.Messages[0]
	ctx, span := t.tracer().Start(ctx, semconv.Send+" "+o.Queue, trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(t.outgoing(semconv.Send, semconv.Send, o.Queue, m)...))
	whole := false
	defer func() {
		if span.IsRecording() {
			sent(span, resultAt(results, 0, err), whole)
		}
		span.End()
	}()
	m.Headers = t.inject(ctx, m.Headers)
	results, err = next(ctx, o)
	whole = true
	return results, err
}

// sendBatch is one span, whose context goes with all messages.
func (t *Tracing) sendBatch(ctx context.Context, o *zq.Outgoing, next zq.SendFunc) (results []zq.Result, err error) {
	ctx, span := t.startBatch(ctx, o, trace.SpanKindProducer, nil)
	whole := false
	defer func() { endBatch(span, results, err, whole) }()
	for i := range o.Messages {
		o.Messages[i].Headers = t.inject(ctx, o.Messages[i].Headers)
	}
	results, err = next(ctx, o)
	whole = true
	return results, err
}

// sendCreated is a span for each message, whose context goes with it, and one for the call, which links to them.
func (t *Tracing) sendCreated(ctx context.Context, o *zq.Outgoing, next zq.SendFunc) (results []zq.Result, err error) {
	created, links := t.create(ctx, o)
	ctx, span := t.startBatch(ctx, o, trace.SpanKindClient, links)
	at := time.Now()
	whole := false
	defer func() {
		endBatch(span, results, err, whole)
		for i, c := range created { // now, for results name the ids that were made up
			if c.IsRecording() {
				sent(c, resultAt(results, i, err), whole)
			}
			c.End(trace.WithTimestamp(at))
		}
	}()
	results, err = next(ctx, o)
	whole = true
	return results, err
}

// create starts the span of each message and puts its context into the headers.
func (t *Tracing) create(ctx context.Context, o *zq.Outgoing) (created []trace.Span, links []trace.Link) {
	created = make([]trace.Span, len(o.Messages))
	links = make([]trace.Link, 0, min(len(o.Messages), maxLinks))
	for i := range o.Messages {
		m := &o.Messages[i]
		var own context.Context
		own, created[i] = t.tracer().Start(ctx, semconv.Create+" "+o.Queue, trace.WithSpanKind(trace.SpanKindProducer),
			trace.WithAttributes(t.outgoing(semconv.Create, semconv.Create, o.Queue, m)...))
		m.Headers = t.inject(own, m.Headers)
		if len(links) < maxLinks {
			links = link(links, created[i].SpanContext(), linkKind(semconv.LinkCreation))
		}
	}
	return created, links
}

func (t *Tracing) startBatch(
	ctx context.Context, o *zq.Outgoing, kind trace.SpanKind, links []trace.Link,
) (context.Context, trace.Span) {
	attrs := append(operation(semconv.Send, semconv.Send, o.Queue, 1),
		attribute.Int(semconv.BatchMessageCountKey, len(o.Messages)))
	return t.tracer().Start(ctx, semconv.Send+" "+o.Queue,
		trace.WithSpanKind(kind), trace.WithLinks(links...), trace.WithAttributes(attrs...))
}

// sent puts a message's result on its span. A duplicate is no error.
func sent(span trace.Span, r zq.Result, whole bool) {
	if r.ID != "" {
		span.SetAttributes(attribute.String(semconv.MessageIDKey, valid(r.ID)))
	}
	switch {
	case !whole:
		fail(span, semconv.ErrorPanic, textPanic)
	case r.Err != nil:
		fail(span, semconv.ErrorType(r.Err), textOf(r.Err))
	case r.Duplicate:
		span.SetAttributes(attribute.String(semconv.EnqueueResultKey, semconv.ResultDuplicate),
			attribute.String(semconv.ExistingIDKey, valid(r.ID)))
	}
}

// endBatch sums the results up. The call has failed if it says so, or if no message got through.
func endBatch(span trace.Span, results []zq.Result, err error, whole bool) {
	defer span.End()
	if !span.IsRecording() {
		return
	}
	failed, duplicates := 0, 0
	for i := range results {
		switch r := &results[i]; {
		case r.Err != nil:
			failed++
		case r.Duplicate:
			duplicates++
		}
	}
	if failed > 0 {
		span.SetAttributes(attribute.Int(semconv.BatchFailedKey, failed))
	}
	if duplicates > 0 {
		span.SetAttributes(attribute.Int(semconv.BatchDuplicatesKey, duplicates))
	}
	if err == nil && failed > 0 && failed == len(results) {
		err = results[0].Err
	}
	switch {
	case !whole:
		fail(span, semconv.ErrorPanic, textPanic)
	case err != nil:
		fail(span, semconv.ErrorType(err), textOf(err))
	}
}

// resultAt is the i-th result; where there is none, the error of the call stands for it.
func resultAt(results []zq.Result, i int, err error) zq.Result {
	if i >= len(results) {
		return zq.Result{Err: err}
	}
	r := results[i]
	if len(results) == 1 && r.Err == nil {
		r.Err = err
	}
	return r
}
