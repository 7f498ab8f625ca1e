package logging

import (
	"context"
	"log/slog"
	"slices"

	"go.opentelemetry.io/otel/trace"
)

// Correlated wraps a slog handler so that each record gets the trace_id and span_id of the span in its context, if
// there is one. They stand at the top level, also for a logger made with With or WithGroup. A handler that is
// correlated already is returned as it is. It is safe for concurrent use if h is.
func Correlated(h slog.Handler) slog.Handler {
	if c, ok := h.(*correlated); ok {
		return c
	}
	return &correlated{top: h, full: h}
}

// correlated keeps apart what comes before the first group and what comes after: what a record adds lands in the
// innermost group, so the ids must be put in ahead of all groups.
type correlated struct {
	top   slog.Handler                      // without groups
	after []func(slog.Handler) slog.Handler // from the first group on
	full  slog.Handler                      // all of it, for records without a span
}

// Enabled asks the handler within.
func (c *correlated) Enabled(ctx context.Context, l slog.Level) bool { return c.full.Enabled(ctx, l) }

// Handle adds the ids and passes the record on.
func (c *correlated) Handle(ctx context.Context, r slog.Record) error {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return c.full.Handle(ctx, r)
	}
	traceID, spanID := slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String())
	if len(c.after) == 0 {
		r = r.Clone() // a record shares its attributes with its copies
		r.AddAttrs(traceID, spanID)
		return c.full.Handle(ctx, r)
	}
	h := c.top.WithAttrs([]slog.Attr{traceID, spanID})
	for _, next := range c.after {
		h = next(h)
	}
	return h.Handle(ctx, r)
}

// WithAttrs keeps the ids for what the new handler handles.
func (c *correlated) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) == 0 {
		return c
	}
	attrs = slices.Clone(attrs)
	return c.and(func(h slog.Handler) slog.Handler { return h.WithAttrs(attrs) }, false)
}

// WithGroup keeps the ids outside the group.
func (c *correlated) WithGroup(name string) slog.Handler {
	if name == "" {
		return c
	}
	return c.and(func(h slog.Handler) slog.Handler { return h.WithGroup(name) }, true)
}

func (c *correlated) and(next func(slog.Handler) slog.Handler, group bool) *correlated {
	full := next(c.full)
	if !group && len(c.after) == 0 {
		return &correlated{top: full, full: full}
	}
	return &correlated{top: c.top, after: append(slices.Clip(c.after), next), full: full}
}
