package tracing

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/zqueue/zqueue/middleware/internal/semconv"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// inject is a copy of headers with ctx in it: without its baggage if that does not fit the limits of headers, and
// headers themselves if nothing fits or there is nothing to put in.
func (t *Tracing) inject(ctx context.Context, headers map[string]string) map[string]string {
	ctx = t.capped(ctx)
	set := t.written(ctx)
	if len(set) == 0 {
		return headers
	}
	if out := t.with(headers, set); out != nil {
		return out
	}
	if out := t.with(headers, t.written(baggage.ContextWithoutBaggage(ctx))); out != nil {
		return out
	}
	return headers
}

// with is a copy of headers with set in it, nil if it breaks their limits.
func (t *Tracing) with(headers, set map[string]string) map[string]string {
	out := make(map[string]string, len(headers)+len(set))
	maps.Copy(out, headers)
	for _, name := range t.cfg.propagator.Fields() {
		delete(out, name) // of another context, as when headers were copied from a delivery
	}
	maps.Copy(out, set)
	if !fits(out) {
		return nil
	}
	return out
}

// written is what the propagator makes of ctx, as far as it can be in a header.
func (t *Tracing) written(ctx context.Context) map[string]string {
	set := propagation.MapCarrier{}
	t.cfg.propagator.Inject(ctx, set)
	maps.DeleteFunc(set, func(name, value string) bool {
		return name == "" || strings.ContainsFunc(name, unicode.IsControl) || !utf8.ValidString(name) || !utf8.ValidString(value)
	})
	return set
}

func fits(headers map[string]string) bool {
	size := 0
	for name, value := range headers {
		size += len(name) + len(value)
	}
	return len(headers) <= zq.MaxHeaders && size <= zq.MaxHeaderBytes
}

// capped is ctx with no more baggage than the limit.
func (t *Tracing) capped(ctx context.Context) context.Context {
	bag := baggage.FromContext(ctx)
	switch {
	case bag.Len() == 0:
		return ctx
	case t.cfg.baggage == 0:
		return baggage.ContextWithoutBaggage(ctx)
	case len(bag.String()) <= t.cfg.baggage:
		return ctx
	}
	members := bag.Members()
	slices.SortFunc(members, func(a, b baggage.Member) int { return cmp.Compare(a.Key(), b.Key()) })
	size, kept := -1, members[:0] // one comma less than members
	for _, m := range members {
		if more := 1 + len(m.String()); size+more <= t.cfg.baggage {
			size, kept = size+more, append(kept, m)
		}
	}
	small, err := baggage.New(kept...)
	if err != nil {
		return baggage.ContextWithoutBaggage(ctx)
	}
	return baggage.ContextWithBaggage(ctx, small)
}

// origin reads where a message was made, and gives a context with its baggage and no span: whatever was active
// when the consumer started has nothing to do with this message.
func (t *Tracing) origin(ctx context.Context, headers map[string]string) (context.Context, trace.SpanContext) {
	ctx = baggage.ContextWithoutBaggage(trace.ContextWithSpanContext(ctx, trace.SpanContext{}))
	if len(headers) == 0 {
		return ctx, trace.SpanContext{}
	}
	from := t.cfg.propagator.Extract(ctx, propagation.MapCarrier(headers))
	if t.cfg.baggage > 0 {
		ctx = baggage.ContextWithBaggage(ctx, baggage.FromContext(from))
	}
	return ctx, trace.SpanContextFromContext(from)
}

// parent is a carrier of a traceparent alone.
type parent string

const parentHeader = "traceparent"

// Get is the value under W3C's name, and nothing under others.
func (p *parent) Get(name string) string {
	if name == parentHeader {
		return string(*p)
	}
	return ""
}

// Set keeps the value under W3C's name.
func (p *parent) Set(name, value string) {
	if name == parentHeader {
		*p = parent(value)
	}
}

// Keys is W3C's name.
func (p *parent) Keys() []string { return []string{parentHeader} }

// traceparent writes a span's context as a word, "" for an invalid one.
func traceparent(sc trace.SpanContext) string {
	var p parent
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), sc), &p)
	return string(p)
}

// parsed reads such a word; the result is invalid if the word is.
func parsed(word string) trace.SpanContext {
	p := parent(word)
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), &p))
}

// maxLinks is what the SDK keeps of one span's links unless told otherwise; it drops the rest.
const maxLinks = 128

// link adds a link if there is something to link to.
func link(links []trace.Link, to trace.SpanContext, attrs ...attribute.KeyValue) []trace.Link {
	if !to.IsValid() {
		return links
	}
	return append(links, trace.Link{SpanContext: to, Attributes: attrs})
}

func linkKind(kind string) attribute.KeyValue { return attribute.String(semconv.LinkKey, kind) }
