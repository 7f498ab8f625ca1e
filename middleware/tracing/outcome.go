package tracing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/zqueue/zqueue/middleware/internal/semconv"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// textPanic is all that is said about a panic that passes by: whoever recovers it has the value and the stack.
const textPanic = "panicked, or ended its goroutine"

// run is how a run ended.
type run struct {
	err   error
	cause error // why its context has ended, nil if it has not
	whole bool  // it returned; otherwise it panicked or ended its goroutine
}

// conclude puts what becomes of the message on its span, by the rules of the core.
func conclude(span trace.Span, d *zq.Delivery, r run) {
	defer func() {
		if recover() != nil { // a method of the handler's error
			fail(span, semconv.ErrorOther, textOf(r.err))
		}
	}()
	class, text := r.told()
	if errors.Is(r.cause, zq.ErrLeaseLost) { // whatever it returned, it cannot be recorded
		fail(span, semconv.ErrorLeaseLost, zq.ErrLeaseLost.Error())
		span.AddEvent(semconv.EventLeaseLost)
		return
	}
	if r.whole && r.err == nil {
		return
	}
	switch v := zq.Explain(r.err); {
	case r.whole && v.Action == zq.ActionPostpone:
		span.AddEvent(semconv.EventPostponed, trace.WithAttributes(attribute.Int64(semconv.DelayKey, v.After.Milliseconds())))
	case v.Action == zq.ActionDead:
		dead(span, v.Reason, class, text)
	case r.whole && errors.Is(r.cause, zq.ErrShutdown) && r.contextual():
		span.AddEvent(semconv.EventReleased)
	case d.MaxAttempts > 0 && d.Attempt >= d.MaxAttempts:
		dead(span, zq.ReasonAttempts, class, text)
	default:
		retried(span, v, class, text)
	}
}

// told is the class and the text of what went wrong, "" if nothing.
func (r run) told() (class, text string) {
	switch {
	case !r.whole:
		return semconv.ErrorPanic, textPanic
	case r.err == nil:
		return "", ""
	case errors.Is(r.cause, zq.ErrTimeout) && r.contextual():
		return semconv.ErrorType(fmt.Errorf("%w: %w", zq.ErrTimeout, r.err)), textOf(zq.ErrTimeout) + ": " + textOf(r.err)
	}
	return semconv.ErrorType(r.err), textOf(r.err)
}

// contextual tells whether the error only passes on that the context has ended.
func (r run) contextual() bool {
	return errors.Is(r.err, context.Canceled) || errors.Is(r.err, context.DeadlineExceeded) || errors.Is(r.err, r.cause)
}

func dead(span trace.Span, reason, class, text string) {
	fail(span, class, text)
	why := attribute.String(semconv.DeadReasonKey, valid(reason))
	span.SetAttributes(why)
	span.AddEvent(semconv.EventDeadLetter, trace.WithAttributes(why, attribute.String(semconv.ErrorTypeKey, class)))
}

// retried tells when the next run is due, if the error says so; else the core decides after this.
func retried(span trace.Span, v zq.Verdict, class, text string) {
	fail(span, class, text)
	attrs := []attribute.KeyValue{attribute.String(semconv.ErrorTypeKey, class)}
	if v.Asked {
		attrs = append(attrs, attribute.Int64(semconv.RetryDelayKey, v.After.Milliseconds()),
			attribute.String(semconv.RetryAtKey, time.Now().Add(v.After).UTC().Format(time.RFC3339Nano)))
	}
	span.AddEvent(semconv.EventRetry, trace.WithAttributes(attrs...))
}
