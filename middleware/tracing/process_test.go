package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/zqueue/zqueue/middleware/tracing"
	"github.com/zqueue/zqueue/zqfx/zq"
)

const (
	made     = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" // where a message was made
	previous = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" // the run before
)

func nothing(context.Context, *zq.Delivery) error { return nil }

// A run is a new root that links to where its message was made; its attributes are the message's.
func TestProcess(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	due := time.UnixMicro(1_700_000_000_000_000)
	d := &zq.Delivery{
		Queue: "orders", ID: "o-1", Kind: "order.placed", Key: "customer-7", Body: []byte("secret-body"), Attempt: 1,
		MaxAttempts: 8, Losses: 0, EnqueuedAt: due, DueAt: due, ClaimedAt: due.Add(250 * time.Millisecond),
		Headers: map[string]string{"traceparent": made, "tracestate": "v=1", "baggage": "tenant=7", "token": "secret-header"},
	}
	starter, end := k.provider.Tracer("start-up").Start(baggage.ContextWithBaggage(t.Context(), baggage.Baggage{}), "start-up")
	defer end.End()
	err := k.run(starter, d, func(ctx context.Context, _ *zq.Delivery) error {
		if b := baggage.FromContext(ctx).Member("tenant").Value(); b != "7" {
			t.Errorf("the handler has baggage %q", b)
		}
		_, inner := k.provider.Tracer("handler").Start(ctx, "inner")
		inner.End()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s, inner := k.one("process orders"), k.one("inner")
	want := map[string]any{
		"messaging.system": "zq", "messaging.operation.type": "process", "messaging.operation.name": "process",
		"messaging.destination.name": "orders", "messaging.message.id": "o-1", "messaging.message.body.size": int64(11),
		"messaging.zq.kind": "order.placed", "messaging.zq.attempt": int64(1), "messaging.zq.max_attempts": int64(8),
		"messaging.zq.queue_wait_ms": int64(250),
	}
	if diff := cmp.Diff(want, attrs(s.Attributes())); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	if s.SpanKind() != trace.SpanKindConsumer || s.Parent().IsValid() || s.Status().Code != codes.Unset || len(s.Events()) != 0 {
		t.Errorf("kind %s, parent %v, status %v, events %v", s.SpanKind(), s.Parent(), s.Status(), s.Events())
	}
	if diff := cmp.Diff(map[string]string{made: "creation"}, linked(s)); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	if inner.Parent().SpanID() != s.SpanContext().SpanID() {
		t.Error("the handler's own span is no child of the run's")
	}
}

// AsChild makes the run a child; a later run links to both where the message was made and the run before.
func TestProcessLinks(t *testing.T) {
	t.Parallel()
	both := map[string]string{made: "creation", previous: "previous"}
	cases := []struct {
		name   string
		opts   []tracing.Option
		d      zq.Delivery
		parent bool
		want   map[string]string
	}{
		{"root, first", nil, zq.Delivery{Attempt: 1}, false, map[string]string{made: "creation"}},
		{"root, second", nil, zq.Delivery{Attempt: 2, Trace: previous}, false, both},
		{"root, put off", nil, zq.Delivery{Attempt: 1, Trace: previous}, false, both},
		{"root, replayed", nil, zq.Delivery{Attempt: 1, Replays: 1, Trace: previous}, false, both},
		{"child, first", []tracing.Option{tracing.AsChild()}, zq.Delivery{Attempt: 1}, true, map[string]string{}},
		{"child, second", []tracing.Option{tracing.AsChild()}, zq.Delivery{Attempt: 2, Trace: previous}, true, both},
		{"child, replayed", []tracing.Option{tracing.AsChild()}, zq.Delivery{Attempt: 1, Replays: 1, Trace: previous}, true, both},
	}
	for _, c := range cases {
		k := newKit(t, c.opts...)
		c.d.Queue, c.d.Headers = "orders", map[string]string{"traceparent": made}
		if err := k.run(t.Context(), &c.d, nothing); err != nil {
			t.Fatal(err)
		}
		s := k.one("process orders")
		if diff := cmp.Diff(c.want, linked(s)); diff != "" {
			t.Errorf("%s: links (-want +got):\n%s", c.name, diff)
		}
		if s.Parent().IsValid() != c.parent || c.parent && word(s.Parent()) != made {
			t.Errorf("%s: parent %v", c.name, s.Parent())
		}
	}
}

// Without a sender's context a child has no parent, and whatever was active at the consumer's start is none either.
func TestProcessChildOfNobody(t *testing.T) {
	t.Parallel()
	k := newKit(t, tracing.AsChild())
	ctx, _ := k.caller()
	if err := k.run(ctx, &zq.Delivery{Queue: "orders", Attempt: 1}, nothing); err != nil {
		t.Fatal(err)
	}
	if s := k.one("process orders"); s.Parent().IsValid() || len(s.Links()) != 0 {
		t.Errorf("parent %v, links %v", s.Parent(), s.Links())
	}
}

// What others wrote into headers and trace may be anything.
func TestProcessHostileContexts(t *testing.T) {
	t.Parallel()
	long := make([]byte, 64<<10)
	for _, bad := range []string{
		"", "x", "00-00000000000000000000000000000000-0000000000000000-00", "ff" + made[2:], made[:54], "00-zz" + made[5:],
		"\xff\xfe\x00", string(long), "|", made + made, "\n" + made,
	} {
		k := newKit(t)
		d := &zq.Delivery{Queue: "orders", ID: "i\xff", Kind: "k\xff", Attempt: 2, Trace: bad, Headers: map[string]string{
			"traceparent": bad, "tracestate": bad, "baggage": bad,
		}}
		if err := k.run(t.Context(), d, nothing); err != nil {
			t.Fatal(err)
		}
		s := k.one("process orders")
		if len(s.Links()) != 0 || s.Parent().IsValid() {
			t.Errorf("%.20q: links %v, parent %v", bad, s.Links(), s.Parent())
		}
		if got := attrs(s.Attributes()); got["messaging.message.id"] != "i\uFFFD" || got["messaging.zq.kind"] != "k\uFFFD" {
			t.Errorf("attributes that exporters refuse: %v", got)
		}
	}
}

// A plain member is its own body, so its span does not name it.
func TestProcessPlain(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	if err := k.run(t.Context(), &zq.Delivery{Queue: "orders", ID: "body", Body: []byte("body"), Plain: true, Attempt: 1}, nothing); err != nil {
		t.Fatal(err)
	}
	got := attrs(k.one("process orders").Attributes())
	if _, named := got["messaging.message.id"]; named || got["messaging.zq.plain"] != true {
		t.Errorf("attributes %v", got)
	}
}

// A panic passes as it is, and so does the end of the goroutine; the span has ended and says so.
func TestProcessPanics(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]zq.HandlerFunc{
		"panic":     func(context.Context, *zq.Delivery) error { panic("boom") },
		"panic nil": func(context.Context, *zq.Delivery) error { panic(nil) }, //nolint:govet // handlers do
		"goexit":    func(context.Context, *zq.Delivery) error { runtime.Goexit(); return nil },
	} {
		k := newKit(t)
		var wg sync.WaitGroup
		var passed any
		wg.Go(func() {
			defer func() { passed = recover() }()
			_ = k.run(context.Background(), &zq.Delivery{Queue: "orders", Attempt: 1, MaxAttempts: 3}, h)
		})
		wg.Wait()
		s := k.one("process orders")
		if s.Status().Code != codes.Error || attrs(s.Attributes())["error.type"] != "panic" || s.Events()[0].Name != "messaging.zq.retry" {
			t.Errorf("%s: status %v, %v, events %v", name, s.Status(), s.Attributes(), s.Events())
		}
		if (passed == nil) != (name == "goexit") {
			t.Errorf("%s: %v passed", name, passed)
		}
	}
}

// A span is active in its own run alone: after a failure, an unrelated message has a trace of its own.
func TestProcessLeavesNothingActive(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	for _, err := range []error{errors.New("fails"), zq.Postpone(time.Second), nil} {
		_ = k.run(ctx, &zq.Delivery{Queue: "orders", Attempt: 1}, func(context.Context, *zq.Delivery) error { return err })
	}
	seen := map[trace.TraceID]bool{}
	for _, s := range k.ended("process orders") {
		seen[s.SpanContext().TraceID()] = true
	}
	if len(seen) != 3 {
		t.Errorf("%d traces for 3 messages", len(seen))
	}
}

// A job that sends itself again a thousand times makes a thousand short traces, each linked to the one before.
func TestProcessEndlessJob(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	var headers map[string]string
	for range 1000 {
		d := &zq.Delivery{Queue: "orders", Attempt: 1, Headers: headers}
		if err := k.run(t.Context(), d, func(ctx context.Context, _ *zq.Delivery) error {
			_, err := k.send(ctx, &zq.Outgoing{Queue: "orders", Messages: []zq.Message{{}}}, func(o *zq.Outgoing) ([]zq.Result, error) {
				headers = o.Messages[0].Headers
				return accepted(o)
			})
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	spans := map[trace.TraceID]int{}
	for _, s := range k.recorder.Ended() {
		spans[s.SpanContext().TraceID()]++
	}
	if len(spans) != 1000 {
		t.Errorf("%d traces, want 1000", len(spans))
	}
	for id, n := range spans {
		if n != 2 {
			t.Fatalf("trace %s has %d spans, want its run and what that sent", id, n)
		}
	}
	runs, sends := k.ended("process orders"), k.ended("send orders")
	for i := 1; i < len(runs); i++ {
		if diff := cmp.Diff(map[string]string{word(sends[i-1].SpanContext()): "creation"}, linked(runs[i])); diff != "" {
			t.Fatalf("run %d: links (-want +got):\n%s", i, diff)
		}
	}
}

func TestIdempotency(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	_ = k.run(t.Context(), &zq.Delivery{Queue: "orders", Attempt: 1}, func(ctx context.Context, _ *zq.Delivery) error {
		tracing.Idempotency(ctx, "skipped", "o-1")
		return nil
	})
	s := k.one("process orders")
	got := attrs(s.Attributes())
	if got["messaging.zq.idempotency.outcome"] != "skipped" || got["messaging.zq.original_message_id"] != "o-1" || s.Status().Code != codes.Unset {
		t.Errorf("status %v, attributes %v", s.Status(), got)
	}
	tracing.Idempotency(t.Context(), "skipped", "") // without a span it does nothing
}

// Runs at once do not mix their spans.
func TestProcessConcurrentSafe(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			id := fmt.Sprint("m-", i)
			_ = k.run(context.Background(), &zq.Delivery{Queue: "orders", ID: id, Attempt: 1}, func(ctx context.Context, _ *zq.Delivery) error {
				tracing.Idempotency(ctx, "ran", id)
				o := &zq.Outgoing{Queue: "orders", Batch: i%2 == 0, Messages: make([]zq.Message, 1)}
				_, err := k.send(ctx, o, accepted)
				return err
			})
		})
	}
	wg.Wait()
	for _, s := range k.ended("process orders") {
		if got := attrs(s.Attributes()); got["messaging.zq.original_message_id"] != got["messaging.message.id"] {
			t.Errorf("attributes %v", got)
		}
	}
	if k.open() != 0 || len(k.ended("process orders")) != 50 {
		t.Errorf("%d open, %d runs", k.open(), len(k.ended("process orders")))
	}
}
