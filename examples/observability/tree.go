package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// printTrace prints a trace as a tree, spans of one parent in the order of their starts.
func printTrace(out io.Writer, spans []sdktrace.ReadOnlySpan, id trace.TraceID) {
	children := map[trace.SpanID][]sdktrace.ReadOnlySpan{}
	for _, s := range spans {
		if s.SpanContext().TraceID() == id {
			children[s.Parent().SpanID()] = append(children[s.Parent().SpanID()], s)
		}
	}
	printBelow(out, children, trace.SpanID{}, 1)
}

func printBelow(out io.Writer, children map[trace.SpanID][]sdktrace.ReadOnlySpan, parent trace.SpanID, depth int) {
	below := children[parent]
	slices.SortFunc(below, func(a, b sdktrace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	for _, s := range below {
		took := s.EndTime().Sub(s.StartTime()).Round(10 * time.Microsecond)
		name := strings.Repeat("  ", depth) + s.Name()
		fmt.Fprintf(out, "%-30s %-8s %8s  %s\n", name, s.SpanKind(), took, remark(s))
		printBelow(out, children, s.SpanContext().SpanID(), depth+1)
	}
}

// remark is what is worth telling of a span.
func remark(s sdktrace.ReadOnlySpan) string {
	var words []string
	for _, a := range s.Attributes() {
		switch a.Key {
		case "messaging.message.id":
			words = append(words, a.Value.AsString())
		case "messaging.zq.attempt":
			words = append(words, "attempt "+a.Value.String())
		}
	}
	for _, l := range s.Links() {
		for _, a := range l.Attributes {
			if a.Key == "messaging.zq.link" && a.Value.AsString() == "previous" {
				words = append(words, "linked to the one before")
			}
		}
	}
	if s.Status().Code == codes.Error {
		words = append(words, "failed: "+s.Status().Description)
	}
	return strings.Join(words, ", ")
}
