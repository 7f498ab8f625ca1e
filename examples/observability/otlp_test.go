package main

import (
	"context"
	"encoding/hex"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// noCollector clears what the test's own environment may say.
var noCollector = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="}

// collector keeps the spans that it is sent.
type collector struct {
	collect.UnimplementedTraceServiceServer

	mu       sync.Mutex
	services map[string]bool
	spans    []*tracev1.Span
}

// Export takes spans.
func (c *collector) Export(
	_ context.Context, r *collect.ExportTraceServiceRequest,
) (*collect.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range r.GetResourceSpans() {
		for _, a := range of.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				c.services[a.GetValue().GetStringValue()] = true
			}
		}
		for _, scope := range of.GetScopeSpans() {
			c.spans = append(c.spans, scope.GetSpans()...)
		}
	}
	return &collect.ExportTraceServiceResponse{}, nil
}

// way is the names from a span's root to it.
func (c *collector) way(span *tracev1.Span) string {
	for _, parent := range c.spans {
		if string(parent.GetSpanId()) == string(span.GetParentSpanId()) && string(parent.GetTraceId()) == string(span.GetTraceId()) {
			return c.way(parent) + " > " + span.GetName()
		}
	}
	return span.GetName()
}

func startCollector(t *testing.T) (c *collector, endpoint string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c = &collector{services: map[string]bool{}}
	server := grpc.NewServer()
	collect.RegisterTraceServiceServer(server, c)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }() // ends with the test
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return c, "http://" + listener.Addr().String()
}

// With a collector's address in the environment the spans go there, those of the drain included.
func TestSpansReachTheCollector(t *testing.T) {
	t.Parallel()
	c, endpoint := startCollector(t)
	p := zqtest.Child(t, "once", "OTEL_EXPORTER_OTLP_ENDPOINT="+endpoint, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=")
	if code := p.Wait(patience); code != 0 {
		t.Fatalf("exit code %d, want 0", code)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ways, traces := map[string]int{}, map[string]bool{}
	for _, span := range c.spans {
		way := c.way(span)
		ways[way]++
		if strings.HasPrefix(way, "checkout") {
			traces[hex.EncodeToString(span.GetTraceId())] = true
		}
	}
	// Claims and records are as many as they happen to be; a skipped payment may first have waited.
	for name, least := range map[string]int{"receive payments": 1, "settle payments": 1, "receive invoices": 1, "settle invoices": 1} {
		if ways[name] < least {
			t.Errorf("%d of %s", ways[name], name)
		}
		delete(ways, name)
	}
	const job = "checkout > send payments"
	if n := ways[job+" > process payments"]; n == 7 {
		ways[job+" > process payments"] = 6
	}
	want := map[string]int{
		"checkout": 6, job: 6, job + " > process payments": 6,
		job + " > process payments > send invoices": 3, job + " > process payments > send invoices > process invoices": 3,
	}
	if diff := cmp.Diff(want, ways); diff != "" {
		t.Errorf("spans by their way (-want +got):\n%s", diff)
	}
	if len(traces) != 6 || !c.services["payments"] {
		t.Errorf("%d traces of checkouts, services %v", len(traces), c.services)
	}
}

// A collector that is gone holds the program up for a few seconds at its end, and no payment.
func TestDeadCollectorHoldsUpNoPayment(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	endpoint := "http://" + listener.Addr().String()
	_ = listener.Close() // nobody answers there
	p := zqtest.Child(t, "once", "OTEL_EXPORTER_OTLP_ENDPOINT="+endpoint, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=")
	p.Expect("messaging_client_consumed_messages_total{", patience)
	if code := p.Wait(patience); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
}
