package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/zqueue/zqueue/middleware/internal/semconv"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// claimed is the span of a claim that found something. Its links are to where the messages were made.
func (t *Tracing) claimed(c zq.Claimed) {
	if len(c.Messages) == 0 {
		return
	}
	var links []trace.Link
	for _, d := range c.Messages {
		if len(links) == maxLinks {
			break
		}
		if d == nil || d.Plain {
			continue
		}
		_, creation := t.origin(context.Background(), d.Headers)
		links = link(links, creation, attribute.String(semconv.MessageIDKey, valid(d.ID)))
	}
	t.batch(semconv.Receive, semconv.Claim, c.Queue, len(c.Messages), links, c.Began, c.Took)
}

// settled is the span of a recorded batch of outcomes. Its links are to their runs. A call that failed has none:
// while Redis is down it is tried again and again.
func (t *Tracing) settled(s zq.Settled) {
	if s.Err != nil || s.Messages == 0 {
		return
	}
	var links []trace.Link
	for _, word := range s.Traces {
		if len(links) == maxLinks {
			break
		}
		links = link(links, parsed(word))
	}
	t.batch(semconv.Settle, semconv.Settle, s.Queue, s.Messages, links, s.Began, s.Took)
}

// batch makes a span that is over already. It has no parent: it belongs to several messages.
func (t *Tracing) batch(kind, name, queue string, n int, links []trace.Link, began time.Time, took time.Duration) {
	attrs := append(operation(kind, name, queue, 1), attribute.Int(semconv.BatchMessageCountKey, n))
	_, span := t.tracer().Start(context.Background(), kind+" "+queue, trace.WithNewRoot(),
		trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(began),
		trace.WithLinks(links...), trace.WithAttributes(attrs...))
	span.End(trace.WithTimestamp(began.Add(took)))
}
