package tracing_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"

	"github.com/zqueue/zqueue/middleware/tracing"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// sendHeaders sends one message with these headers and gives what it had in the end.
func (k *kit) sendHeaders(ctx context.Context, headers map[string]string) map[string]string {
	var sent map[string]string
	_, err := k.send(ctx, &zq.Outgoing{Queue: "orders", Messages: []zq.Message{{Headers: headers}}}, func(o *zq.Outgoing) ([]zq.Result, error) {
		sent = o.Messages[0].Headers
		return accepted(o)
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return sent
}

func withBaggage(t *testing.T, values ...string) context.Context {
	t.Helper()
	var members []baggage.Member
	for i, v := range values {
		m, err := baggage.NewMember(fmt.Sprint("m", i), v)
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, m)
	}
	bag, err := baggage.New(members...)
	if err != nil {
		t.Fatal(err)
	}
	return baggage.ContextWithBaggage(t.Context(), bag)
}

// Baggage beyond the limit is dropped by whole members.
func TestBaggage(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 1000)
	cases := []struct {
		name   string
		opts   []tracing.Option
		values []string
		want   string
	}{
		{"fits", nil, []string{"1"}, "m0=1"},
		{"one is too large", nil, []string{"1", big + big, "3"}, "m0=1,m2=3"},
		{"all are too large", nil, []string{big + big}, ""},
		{"to the byte", []tracing.Option{tracing.WithBaggage(9)}, []string{"1", "2"}, "m0=1,m1=2"},
		{"a byte less", []tracing.Option{tracing.WithBaggage(8)}, []string{"1", "2"}, "m0=1"},
		{"none", []tracing.Option{tracing.WithoutBaggage()}, []string{"1"}, ""},
	}
	for _, c := range cases {
		k := newKit(t, c.opts...)
		sent := k.sendHeaders(withBaggage(t, c.values...), nil)
		got, err := baggage.Parse(sent["baggage"])
		want, _ := baggage.Parse(c.want)
		if sent["traceparent"] == "" || err != nil && c.want != "" {
			t.Errorf("%s: %v, %v", c.name, sent, err)
		}
		if len(got.Members()) != len(want.Members()) || got.Len() == 0 != (c.want == "") {
			t.Errorf("%s: baggage %q, want %q", c.name, sent["baggage"], c.want)
		}
		for _, m := range want.Members() {
			if got.Member(m.Key()).Value() != m.Value() {
				t.Errorf("%s: baggage %q, want %q", c.name, sent["baggage"], c.want)
			}
		}
	}
}

// A context that does not fit the limits of headers is left out: first the baggage, then all of it.
func TestHeaderLimits(t *testing.T) {
	t.Parallel()
	many := func(n int) map[string]string {
		h := map[string]string{}
		for i := range n {
			h[fmt.Sprint("h", i)] = "v"
		}
		return h
	}
	wide := func(bytes int) map[string]string { return map[string]string{"h": strings.Repeat("v", bytes-1)} }
	const parent, bag = len("traceparent") + 55, len("baggage") + len("m0=1")
	cases := []struct {
		name            string
		headers         map[string]string
		parent, baggage bool
	}{
		{"room for two", many(zq.MaxHeaders - 2), true, true},
		{"room for one", many(zq.MaxHeaders - 1), true, false},
		{"full", many(zq.MaxHeaders), false, false},
		{"bytes for two", wide(zq.MaxHeaderBytes - parent - bag), true, true},
		{"bytes for one", wide(zq.MaxHeaderBytes - parent - bag + 1), true, false},
		{"bytes for just one", wide(zq.MaxHeaderBytes - parent), true, false},
		{"a byte short", wide(zq.MaxHeaderBytes - parent + 1), false, false},
	}
	for _, c := range cases {
		k := newKit(t)
		sent := k.sendHeaders(withBaggage(t, "1"), c.headers)
		_, hasParent := sent["traceparent"]
		_, hasBaggage := sent["baggage"]
		if hasParent != c.parent || hasBaggage != c.baggage {
			t.Errorf("%s: traceparent %t, baggage %t", c.name, hasParent, hasBaggage)
		}
		for name, value := range c.headers {
			if sent[name] != value {
				t.Fatalf("%s: header %s is gone", c.name, name)
			}
		}
	}
}

// Headers copied from a delivery carry the old context; no part of it stays beside the new one.
func TestHeadersOfAnotherContext(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	old := map[string]string{"traceparent": "00-00000000000000000000000000000001-0000000000000001-01", "tracestate": "a=b", "baggage": "m=1", "x": "y"}
	sent := k.sendHeaders(t.Context(), old)
	if diff := cmp.Diff(map[string]string{"x": "y", "traceparent": word(k.one("send orders").SpanContext())}, sent); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

// rude is a propagator that writes what cannot be in a header, beside what can.
type rude struct{ propagation.TraceContext }

func (r rude) Inject(ctx context.Context, c propagation.TextMapCarrier) {
	r.TraceContext.Inject(ctx, c)
	c.Set("", "nameless")
	c.Set("line\nbreak", "v")
	c.Set("bytes", "\xff")
	c.Set("custom", "v")
}

func TestHeadersOfARudePropagator(t *testing.T) {
	t.Parallel()
	k := newKit(t, tracing.WithPropagator(rude{}))
	sent := k.sendHeaders(t.Context(), nil)
	if len(sent) != 2 || sent["custom"] != "v" || sent["traceparent"] == "" {
		t.Errorf("headers %v", sent)
	}
}
