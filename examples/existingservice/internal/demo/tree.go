package demo

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// Paths are the ways through the customer's trace, from its root to each span without children, by name and kind:
// "a client > b server".
func (s Story) Paths() []string {
	var paths, way []string
	deepest := -1
	s.tree(func(depth int, span tracetest.SpanStub) {
		step := span.Name + " " + span.SpanKind.String()
		if depth > 0 {
			step = way[depth-1] + " > " + step
		}
		if depth > deepest && len(paths) > 0 {
			paths = paths[:len(paths)-1] // the one before goes on
		}
		way, deepest = append(way[:depth], step), depth
		paths = append(paths, step)
	})
	return paths
}

// tree visits the customer's trace, parents before their children, those in the order of their starts.
func (s Story) tree(visit func(depth int, span tracetest.SpanStub)) {
	children, known := map[trace.SpanID][]tracetest.SpanStub{}, map[trace.SpanID]bool{}
	for _, span := range s.Spans {
		known[span.SpanContext.SpanID()] = true
	}
	for _, span := range s.Spans {
		if span.SpanContext.TraceID() != s.Trace {
			continue
		}
		parent := span.Parent.SpanID()
		if !known[parent] {
			parent = trace.SpanID{} // a root
		}
		children[parent] = append(children[parent], span)
	}
	var walk func(parent trace.SpanID, depth int)
	walk = func(parent trace.SpanID, depth int) {
		slices.SortFunc(children[parent], func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
		for _, span := range children[parent] {
			visit(depth, span)
			walk(span.SpanContext.SpanID(), depth+1)
		}
	}
	walk(trace.SpanID{}, 0)
}

func took(span tracetest.SpanStub) time.Duration {
	return span.EndTime.Sub(span.StartTime).Round(time.Millisecond)
}

func failure(span tracetest.SpanStub) string {
	if span.Status.Code != codes.Error {
		return ""
	}
	if span.Status.Description == "" {
		return "  failed"
	}
	return "  failed: " + span.Status.Description
}
