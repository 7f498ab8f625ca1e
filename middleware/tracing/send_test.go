package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/zqueue/zqueue/middleware/tracing"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// One message is one PRODUCER span, a child of the caller's, and its context goes along in a copy of the headers.
func TestSendOne(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx, caller := k.caller()
	headers := map[string]string{"tenant": "secret-tenant"}
	m := zq.Message{Kind: "order.placed", Key: "customer-7", Delay: 1500 * time.Millisecond, Body: []byte("secret-body"), Headers: headers}
	var sent map[string]string
	if _, err := k.send(ctx, &zq.Outgoing{Queue: "orders", Messages: []zq.Message{m}}, func(o *zq.Outgoing) ([]zq.Result, error) {
		sent = o.Messages[0].Headers
		return accepted(o)
	}); err != nil {
		t.Fatal(err)
	}
	s := k.one("send orders")
	want := map[string]any{
		"messaging.system": "zq", "messaging.operation.type": "send", "messaging.operation.name": "send",
		"messaging.destination.name": "orders", "messaging.message.id": "made-up", "messaging.message.body.size": int64(11),
		"messaging.zq.kind": "order.placed", "messaging.zq.delay_ms": int64(1500),
	}
	if diff := cmp.Diff(want, attrs(s.Attributes())); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	if s.SpanKind() != trace.SpanKindProducer || s.Status().Code != codes.Unset {
		t.Errorf("kind %s, status %v", s.SpanKind(), s.Status())
	}
	if s.Parent().SpanID() != caller.SpanContext().SpanID() {
		t.Error("it is no child of the caller's span")
	}
	if got := s.InstrumentationScope(); got.SchemaURL != "https://opentelemetry.io/schemas/1.43.0" ||
		got.Name != "github.com/zqueue/zqueue/middleware/tracing" {
		t.Errorf("scope %+v", got)
	}
	if diff := cmp.Diff(map[string]string{"tenant": "secret-tenant", "traceparent": word(s.SpanContext())}, sent); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if len(headers) != 1 {
		t.Errorf("the caller's map has become %v", headers)
	}
}

func TestSendOneOutcomes(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		result zq.Result
		err    error
		code   codes.Code
		want   map[string]any
	}{
		{
			name: "duplicate", result: zq.Result{Receipt: zq.Receipt{ID: "o-1", Duplicate: true, State: zq.StatePending}},
			want: map[string]any{"messaging.zq.enqueue.result": "duplicate", "messaging.zq.existing_id": "o-1"},
		},
		{
			name: "full", err: fmt.Errorf("enqueue: %w", zq.ErrStoreFull), code: codes.Error,
			want: map[string]any{"error.type": "store_full"},
		},
		{
			name: "replication", result: zq.Result{Receipt: zq.Receipt{ID: "o-1"}}, err: &zq.ReplicationError{Want: 1},
			code: codes.Error, want: map[string]any{"error.type": "replication", "messaging.message.id": "o-1"},
		},
	}
	for _, c := range cases {
		k := newKit(t)
		_, err := k.send(t.Context(), &zq.Outgoing{Queue: "orders", Messages: []zq.Message{{ID: "o-1"}}}, func(*zq.Outgoing) ([]zq.Result, error) {
			c.result.Err = c.err
			return []zq.Result{c.result}, c.err
		})
		if !errors.Is(err, c.err) {
			t.Errorf("%s: the caller gets %v", c.name, err)
		}
		s := k.one("send orders")
		got := attrs(s.Attributes())
		maps.DeleteFunc(got, func(name string, _ any) bool { return c.want[name] == nil && name != "error.type" })
		if diff := cmp.Diff(c.want, got); diff != "" || s.Status().Code != c.code {
			t.Errorf("%s: status %v, attributes (-want +got):\n%s", c.name, s.Status(), diff)
		}
	}
}

// A panic of what is further in ends the span, and passes.
func TestSendPanics(t *testing.T) {
	t.Parallel()
	for _, batch := range []bool{false, true} {
		k := newKit(t)
		func() {
			defer func() {
				if recover() != "boom" {
					t.Error("the panic did not pass as it was")
				}
			}()
			_, _ = k.send(t.Context(), &zq.Outgoing{Queue: "orders", Messages: make([]zq.Message, 1), Batch: batch},
				func(*zq.Outgoing) ([]zq.Result, error) { panic("boom") })
		}()
		if s := k.one("send orders"); attrs(s.Attributes())["error.type"] != "panic" || k.open() != 0 {
			t.Errorf("batch %t: %v, %d spans open", batch, s.Attributes(), k.open())
		}
	}
}

// A batch is a CLIENT span that links to a create span for each message; their contexts go along.
func TestSendBatch(t *testing.T) {
	t.Parallel()
	k := newKit(t, tracing.WithKeys())
	ctx, caller := k.caller()
	o := &zq.Outgoing{Queue: "orders", Batch: true, Messages: []zq.Message{{ID: "a", Key: "k\xff"}, {}, {ID: "c"}}}
	var sent []zq.Message
	_, err := k.send(ctx, o, func(o *zq.Outgoing) ([]zq.Result, error) {
		sent = o.Messages
		results, _ := accepted(o)
		results[0].Duplicate, results[2].Err = true, zq.ErrInvalid
		return results, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s, creates := k.one("send orders"), k.ended("create orders")
	want := map[string]any{
		"messaging.system": "zq", "messaging.operation.type": "send", "messaging.operation.name": "send",
		"messaging.destination.name": "orders", "messaging.batch.message_count": int64(3),
		"messaging.zq.batch.failed": int64(1), "messaging.zq.batch.duplicates": int64(1),
	}
	if diff := cmp.Diff(want, attrs(s.Attributes())); diff != "" || s.Status().Code != codes.Unset {
		t.Errorf("send: status %v, attributes (-want +got):\n%s", s.Status(), diff)
	}
	if s.SpanKind() != trace.SpanKindClient || len(creates) != 3 || len(s.Links()) != 3 {
		t.Fatalf("kind %s, %d create spans, %d links", s.SpanKind(), len(creates), len(s.Links()))
	}
	links := linked(s)
	for i, c := range creates {
		if c.SpanKind() != trace.SpanKindProducer || c.Parent().SpanID() != caller.SpanContext().SpanID() {
			t.Errorf("create %d: kind %s, parent %s", i, c.SpanKind(), c.Parent().SpanID())
		}
		if w := word(c.SpanContext()); links[w] != "creation" || sent[i].Headers["traceparent"] != w {
			t.Errorf("create %d: linked %q, headers %v", i, links[w], sent[i].Headers)
		}
		if c.EndTime().After(s.EndTime()) {
			t.Errorf("create %d ends after the call", i)
		}
	}
	first, second, third := attrs(creates[0].Attributes()), attrs(creates[1].Attributes()), attrs(creates[2].Attributes())
	if first["messaging.zq.existing_id"] != "a" || first["messaging.zq.key"] != "k\uFFFD" ||
		second["messaging.message.id"] != "made-up" || third["error.type"] != "invalid" {
		t.Errorf("create spans: %v, %v, %v", first, second, third)
	}
}

// Without create spans one PRODUCER span is where all messages were made. A call that fails altogether is an error.
func TestSendBatchWithoutCreateSpans(t *testing.T) {
	t.Parallel()
	k := newKit(t, tracing.WithCreateSpans(false))
	o := &zq.Outgoing{Queue: "orders", Batch: true, Messages: make([]zq.Message, 2)}
	var sent []zq.Message
	_, _ = k.send(t.Context(), o, func(o *zq.Outgoing) ([]zq.Result, error) {
		sent = o.Messages
		return []zq.Result{{Err: io.EOF}, {Err: io.EOF}}, nil
	})
	s := k.one("send orders")
	if s.SpanKind() != trace.SpanKindProducer || len(k.ended("create orders")) != 0 {
		t.Errorf("kind %s, %d create spans", s.SpanKind(), len(k.ended("create orders")))
	}
	if s.Status().Code != codes.Error || attrs(s.Attributes())["error.type"] != "eof" {
		t.Errorf("status %v, %v", s.Status(), s.Attributes())
	}
	for i := range sent {
		if sent[i].Headers["traceparent"] != word(s.SpanContext()) {
			t.Errorf("message %d has %v", i, sent[i].Headers)
		}
	}
}

// The SDK keeps 128 links; a larger batch has the true count, and no link is lost on the way.
func TestSendLargeBatch(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	o := &zq.Outgoing{Queue: "orders", Batch: true, Messages: make([]zq.Message, 200)}
	if _, err := k.send(t.Context(), o, accepted); err != nil {
		t.Fatal(err)
	}
	s := k.one("send orders")
	if len(s.Links()) != 128 || s.DroppedLinks() != 0 || attrs(s.Attributes())["messaging.batch.message_count"] != int64(200) {
		t.Errorf("%d links, %d dropped, %v", len(s.Links()), s.DroppedLinks(), s.Attributes())
	}
	if n := len(k.ended("create orders")); n != 200 {
		t.Errorf("%d create spans", n)
	}
}

func TestSendNothing(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	if _, err := k.send(context.Background(), &zq.Outgoing{Queue: "orders", Batch: true}, accepted); err != nil {
		t.Fatal(err)
	}
	if n := len(k.recorder.Started()); n != 0 {
		t.Errorf("%d spans for no message", n)
	}
}
