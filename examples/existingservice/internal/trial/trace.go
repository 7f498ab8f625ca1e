// Package trial has the tests of what both variants with a job promise. It is for tests alone.
package trial

import (
	"bytes"
	"log/slog"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/zqueue/zqueue/examples/existingservice/internal/demo"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// OneTrace tests that the customer has an answer before the mail server gives one, and that the request and both runs
// of its job are one trace.
func OneTrace(t *testing.T, service demo.Service) {
	t.Helper()
	var out bytes.Buffer
	story, err := demo.Tell(t.Context(), service, zqtest.Redis(t).URL(), &out, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if story.Status != http.StatusCreated || story.Mailed != 1 {
		t.Errorf("status %d %q, %d receipts mailed", story.Status, story.Text, story.Mailed)
	}
	const job = "buy a book client > POST /orders server > send receipts producer > process receipts consumer"
	want := []string{job + " > mail receipt client", job + " > mail receipt client"}
	if diff := cmp.Diff(want, story.Paths()); diff != "" {
		t.Errorf("the trace (-want +got):\n%s", diff)
	}
	var request, runs []tracetest.SpanStub
	for _, span := range story.Spans {
		switch span.Name {
		case "POST /orders":
			request = append(request, span)
		case "process receipts":
			runs = append(runs, span)
		case "receive receipts", "settle receipts":
			if span.SpanContext.TraceID() == story.Trace {
				t.Errorf("%s is of many messages, and in the trace of one", span.Name)
			}
		}
	}
	if len(request) != 1 || len(runs) != 2 {
		t.Fatalf("%d requests, %d runs", len(request), len(runs))
	}
	if !request[0].EndTime.Before(runs[0].EndTime) {
		t.Error("the request has waited for its job")
	}
	if !linked(runs[1], runs[0]) { // they are in the order of their ends
		t.Errorf("the second run does not link to the first: %v", runs[1].Links)
	}
}

func linked(from, to tracetest.SpanStub) bool {
	for _, l := range from.Links {
		if l.SpanContext.SpanID() == to.SpanContext.SpanID() {
			return true
		}
	}
	return false
}
