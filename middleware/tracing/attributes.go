package tracing

import (
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/zqueue/zqueue/middleware/internal/semconv"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// operation are the attributes of every span, with room for more.
func operation(kind, name, queue string, room int) []attribute.KeyValue {
	return append(make([]attribute.KeyValue, 0, 4+room),
		attribute.String(semconv.SystemKey, semconv.System),
		attribute.String(semconv.OperationTypeKey, kind),
		attribute.String(semconv.OperationNameKey, name),
		attribute.String(semconv.DestinationNameKey, queue))
}

// outgoing are the attributes of a message that is sent.
func (t *Tracing) outgoing(kind, name, queue string, m *zq.Message) []attribute.KeyValue {
	attrs := append(operation(kind, name, queue, 5), attribute.Int(semconv.MessageBodySizeKey, len(m.Body)))
	if m.ID != "" {
		attrs = append(attrs, attribute.String(semconv.MessageIDKey, valid(m.ID)))
	}
	if m.Kind != "" {
		attrs = append(attrs, attribute.String(semconv.KindKey, valid(m.Kind)))
	}
	if t.cfg.keys && m.Key != "" {
		attrs = append(attrs, attribute.String(semconv.OrderingKeyKey, valid(m.Key)))
	}
	if delay := delayOf(m); delay > 0 {
		attrs = append(attrs, attribute.Int64(semconv.DelayKey, delay.Milliseconds()))
	}
	return attrs
}

// delayOf is how long a message is kept back; of an instant, by this machine's clock.
func delayOf(m *zq.Message) time.Duration {
	if m.Due.IsZero() {
		return m.Delay
	}
	return max(time.Until(m.Due), 0)
}

// incoming are the attributes of a run.
func (t *Tracing) incoming(d *zq.Delivery) []attribute.KeyValue {
	attrs := append(operation(semconv.Process, semconv.Process, d.Queue, 9),
		attribute.Int(semconv.MessageBodySizeKey, len(d.Body)),
		attribute.Int(semconv.AttemptKey, d.Attempt))
	if d.Plain { // its id is its body
		attrs = append(attrs, attribute.Bool(semconv.PlainKey, true))
	} else {
		attrs = append(attrs, attribute.String(semconv.MessageIDKey, valid(d.ID)))
	}
	if d.Kind != "" {
		attrs = append(attrs, attribute.String(semconv.KindKey, valid(d.Kind)))
	}
	if t.cfg.keys && d.Key != "" {
		attrs = append(attrs, attribute.String(semconv.OrderingKeyKey, valid(d.Key)))
	}
	if d.MaxAttempts > 0 {
		attrs = append(attrs, attribute.Int(semconv.MaxAttemptsKey, d.MaxAttempts))
	}
	if d.Losses > 0 {
		attrs = append(attrs, attribute.Int(semconv.LossesKey, d.Losses))
	}
	if d.Replays > 0 {
		attrs = append(attrs, attribute.Int(semconv.ReplaysKey, d.Replays))
	}
	if wait, ok := firstWait(d); ok {
		attrs = append(attrs, attribute.Int64(semconv.QueueWaitKey, wait.Milliseconds()))
	}
	return attrs
}

// firstWait is how long a message waited for its first run once it was due, all by the server's clock.
func firstWait(d *zq.Delivery) (time.Duration, bool) {
	if d.Attempt != 1 || d.Replays > 0 || d.Trace != "" || d.DueAt.IsZero() || d.ClaimedAt.IsZero() {
		return 0, false
	}
	return max(d.ClaimedAt.Sub(d.DueAt), 0), true
}

// maxText is how much of an error's text is kept, in bytes.
const maxText = 512

// textOf is an error's text: clipped, and safe from an Error method that panics.
func textOf(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("%T, whose Error method panics", err)
		}
	}()
	text = err.Error()
	if len(text) > maxText {
		text = text[:maxText]
	}
	return valid(text)
}

// valid is s as exporters take it: they refuse a whole batch of spans for one string that is not UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
