package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/zqueue/zqueue/examples/existingservice/internal/shop"
)

// Service runs until ctx ends, and then stops in good order.
type Service func(ctx context.Context, env Env) error

// patience bounds each wait of a story, which takes about a second.
const patience = time.Minute

// Story is what happened: a customer has placed an order.
type Story struct {
	// Status and Text are what the customer was answered, after Took.
	Status int
	Text   string
	Took   time.Duration
	// Mailed is how many receipts the mail server took.
	Mailed int
	// Trace is the customer's, Spans are all that there were.
	Trace trace.TraceID
	Spans tracetest.SpanStubs
}

// Tell runs the service, places an order, waits until the receipt is mailed if the order was accepted, and stops it.
func Tell(ctx context.Context, service Service, redisURL string, out io.Writer, log *slog.Logger) (Story, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return Story{}, err
	}
	defer func() { _ = listener.Close() }() // the service's, unless it failed to start
	spans := tracetest.NewInMemoryExporter()
	traces := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	mails := newMailServer()
	up := &doorbell{Listener: listener, rung: make(chan struct{})}
	env := Env{
		Listener: up, Mail: shop.NewMailer(mails.deliver, traces), Traces: traces, Log: log, Out: out, RedisURL: redisURL,
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { // ends with the service
		err := service(running, env)
		stop() // nobody is there to answer
		ended <- err
	}()
	var s Story
	if err = await(running, up.rung, "the service takes no requests"); err == nil {
		s, err = order(running, "http://"+listener.Addr().String(), traces)
	}
	if err == nil && s.Status == http.StatusCreated {
		err = await(running, mails.first, "the receipt was not mailed")
	}
	stop()
	err = errors.Join(<-ended, err)
	s.Mailed, s.Spans = mails.taken(), spans.GetSpans()
	return s, errors.Join(err, traces.Shutdown(context.WithoutCancel(ctx)))
}

// doorbell tells when a service begins to take requests, so that its start is not part of the customer's time.
type doorbell struct {
	net.Listener

	once sync.Once
	rung chan struct{}
}

// Accept rings the first time.
func (d *doorbell) Accept() (net.Conn, error) {
	d.once.Do(func() { close(d.rung) })
	return d.Listener.Accept()
}

func await(ctx context.Context, signal <-chan struct{}, otherwise string) error {
	select {
	case <-signal:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", otherwise, context.Cause(ctx))
	}
}

// order places an order as a customer does whose browser has a trace of its own.
func order(ctx context.Context, service string, traces trace.TracerProvider) (Story, error) {
	ctx, span := traces.Tracer("example.com/customer").Start(ctx, "buy a book", trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	s := Story{Trace: span.SpanContext().TraceID()}
	body, err := json.Marshal(shop.Order{ID: "o-1", Customer: "ann@example.com", Item: "a book"})
	if err != nil {
		return s, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, service+"/orders", bytes.NewReader(body))
	if err != nil {
		return s, err
	}
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(r.Header))
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	began := time.Now()
	response, err := client.Do(r)
	if err != nil {
		return s, fmt.Errorf("place an order: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	s.Status, s.Text, s.Took = response.StatusCode, strings.TrimSpace(string(text)), time.Since(began)
	return s, err
}

// Print tells the story.
func (s Story) Print(out io.Writer) {
	fmt.Fprintf(out, "POST /orders: %d %s after %s\n", s.Status, http.StatusText(s.Status), s.Took.Round(time.Millisecond))
	if s.Text != "" {
		fmt.Fprintf(out, "  %s\n", s.Text)
	}
	fmt.Fprintf(out, "receipts mailed: %d\nthe trace:\n", s.Mailed)
	s.tree(func(depth int, span tracetest.SpanStub) {
		name := strings.Repeat("  ", depth) + span.Name
		fmt.Fprintf(out, "  %-30s %-8s %6s%s\n", name, span.SpanKind, took(span), failure(span))
	})
}
