package tracing_test

import (
	"context"
	"os"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/zqueue/zqueue/middleware/tracing"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// limit bounds every wait of these tests.
const limit = 20 * time.Second

func TestMain(m *testing.M) { os.Exit(zqtest.Main(m)) }

// kit is a tracing whose spans are kept.
type kit struct {
	*tracing.Tracing
	t        *testing.T
	recorder *tracetest.SpanRecorder
	provider *sdktrace.TracerProvider
}

func newKit(t *testing.T, opts ...tracing.Option) *kit {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	tr, err := tracing.New(append([]tracing.Option{tracing.WithTracerProvider(provider)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return &kit{Tracing: tr, t: t, recorder: recorder, provider: provider}
}

// caller is a context with an active span.
func (k *kit) caller() (context.Context, trace.Span) {
	return k.provider.Tracer("caller").Start(context.Background(), "caller")
}

// ended are the spans of that name that have ended, in the order of their ends.
func (k *kit) ended(name string) []sdktrace.ReadOnlySpan {
	var found []sdktrace.ReadOnlySpan
	for _, s := range k.recorder.Ended() {
		if s.Name() == name {
			found = append(found, s)
		}
	}
	return found
}

// one is the only span of that name.
func (k *kit) one(name string) sdktrace.ReadOnlySpan {
	k.t.Helper()
	found := k.ended(name)
	if len(found) != 1 {
		k.t.Fatalf("%d spans named %q, want 1", len(found), name)
	}
	return found[0]
}

// open are the spans that have started and not ended.
func (k *kit) open() int { return len(k.recorder.Started()) - len(k.recorder.Ended()) }

// send sends messages through the middleware; answer stands in for Redis.
func (k *kit) send(ctx context.Context, o *zq.Outgoing, answer func(*zq.Outgoing) ([]zq.Result, error)) ([]zq.Result, error) {
	return k.Send()(func(_ context.Context, o *zq.Outgoing) ([]zq.Result, error) { return answer(o) })(ctx, o)
}

// run runs a handler through the middleware.
func (k *kit) run(ctx context.Context, d *zq.Delivery, h zq.HandlerFunc) error {
	return k.Middleware()(h).Handle(ctx, d)
}

// accepted answers for each message with an id of its own or a made-up one.
func accepted(o *zq.Outgoing) ([]zq.Result, error) {
	results := make([]zq.Result, len(o.Messages))
	for i, m := range o.Messages {
		if results[i].ID = m.ID; m.ID == "" {
			results[i].ID = "made-up"
		}
	}
	return results, nil
}

// attrs are attributes as a map.
func attrs(list []attribute.KeyValue) map[string]any {
	m := map[string]any{}
	for _, a := range list {
		m[string(a.Key)] = a.Value.AsInterface()
	}
	return m
}

func word(sc trace.SpanContext) string {
	return "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + "-" + sc.TraceFlags().String()
}

// linked are the spans that s links to, as traceparents, with what the link says about them.
func linked(s sdktrace.ReadOnlySpan) map[string]string {
	m := map[string]string{}
	for _, l := range s.Links() {
		kind, _ := attrs(l.Attributes)["messaging.zq.link"].(string)
		m[word(l.SpanContext)] = kind
	}
	return m
}
