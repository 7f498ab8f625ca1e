package tracing_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/zqueue/zqueue/middleware/tracing"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// parents are n traceparents.
func parents(n int) []string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprintf("00-0af7651916cd43dd8448eb211c80319c-%016x-01", i+1)
	}
	return words
}

// A claim is a root of its own, over when it is told of, with a link for each message that has a context.
func TestReceive(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	began := time.Now().Add(-time.Minute)
	words := parents(2)
	messages := []*zq.Delivery{
		{ID: "a", Headers: map[string]string{"traceparent": words[0]}},
		{ID: "no context"},
		{ID: "unreadable", Headers: map[string]string{"traceparent": "?"}},
		{ID: "body", Plain: true},
		nil,
		{ID: "b", Headers: map[string]string{"traceparent": words[1]}},
	}
	k.Observer().Claimed(zq.Claimed{Queue: "orders", Messages: messages, Began: began, Took: 3 * time.Millisecond})
	s := k.one("receive orders")
	want := map[string]any{
		"messaging.system": "zq", "messaging.operation.type": "receive", "messaging.operation.name": "claim",
		"messaging.destination.name": "orders", "messaging.batch.message_count": int64(6),
	}
	if diff := cmp.Diff(want, attrs(s.Attributes())); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	if s.SpanKind() != trace.SpanKindClient || s.Parent().IsValid() || !s.StartTime().Equal(began) || s.EndTime().Sub(began) != 3*time.Millisecond {
		t.Errorf("kind %s, parent %v, from %s to %s", s.SpanKind(), s.Parent(), s.StartTime(), s.EndTime())
	}
	got := map[string]any{}
	for _, l := range s.Links() {
		got[word(l.SpanContext)] = attrs(l.Attributes)["messaging.message.id"]
	}
	if diff := cmp.Diff(map[string]any{words[0]: "a", words[1]: "b"}, got); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

// Links stop at what the SDK keeps; the count is the true one.
func TestBatchLinks(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	var messages []*zq.Delivery
	for _, w := range parents(200) {
		messages = append(messages, &zq.Delivery{Headers: map[string]string{"traceparent": w}})
	}
	k.Observer().Claimed(zq.Claimed{Queue: "orders", Messages: messages})
	k.Observer().Settled(zq.Settled{Queue: "orders", Messages: 200, Traces: parents(200)})
	for _, name := range []string{"receive orders", "settle orders"} {
		s := k.one(name)
		if len(s.Links()) != 128 || s.DroppedLinks() != 0 || attrs(s.Attributes())["messaging.batch.message_count"] != int64(200) {
			t.Errorf("%s: %d links, %d dropped, %v", name, len(s.Links()), s.DroppedLinks(), s.Attributes())
		}
	}
}

func TestSettle(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	began := time.Now().Add(-time.Minute)
	words := parents(2)
	k.Observer().Settled(zq.Settled{
		Queue: "orders", Messages: 3, Traces: append(words, "not a context"), Began: began, Took: time.Millisecond,
	})
	s := k.one("settle orders")
	want := map[string]any{
		"messaging.system": "zq", "messaging.operation.type": "settle", "messaging.operation.name": "settle",
		"messaging.destination.name": "orders", "messaging.batch.message_count": int64(3),
	}
	if diff := cmp.Diff(want, attrs(s.Attributes())); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	if s.SpanKind() != trace.SpanKindClient || s.Parent().IsValid() || s.Status().Code != codes.Unset || s.EndTime().Sub(began) != time.Millisecond {
		t.Errorf("kind %s, parent %v, status %v, end %s", s.SpanKind(), s.Parent(), s.Status(), s.EndTime())
	}
	if diff := cmp.Diff(map[string]string{words[0]: "", words[1]: ""}, linked(s)); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

// What found nothing and what failed makes no span, and neither does what is switched off.
func TestNoBatchSpans(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.Observer().Claimed(zq.Claimed{Queue: "orders"})
	k.Observer().Settled(zq.Settled{Queue: "orders", Messages: 1, Err: errors.New("redis is down")})
	k.Observer().Settled(zq.Settled{Queue: "orders"})
	if n := len(k.recorder.Started()); n != 0 {
		t.Errorf("%d spans", n)
	}
	off := newKit(t, tracing.WithBatchSpans(false)).Observer()
	if off.Claimed != nil || off.Settled != nil {
		t.Error("switched off, it still observes")
	}
}
