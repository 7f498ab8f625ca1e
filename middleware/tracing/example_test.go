package tracing_test

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/zqueue/zqueue/middleware/tracing"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// A message is sent and handled; the span of its run links to the span of the call that sent it.
func ExampleNew() {
	ctx := context.Background()
	server, err := zqtest.StartEmbedded() // a real program connects to its Redis
	check(err)
	defer server.Close()
	rdb := server.Client()

	spans := tracetest.NewSpanRecorder() // and exports its spans
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	tr, err := tracing.New(tracing.WithTracerProvider(provider))
	check(err)

	p, err := zq.NewProducer(rdb, "orders", zq.WithSendMiddleware(tr.Send()))
	check(err)
	_, err = p.Enqueue(ctx, zq.Message{ID: "o-1"})
	check(err)

	finished := make(chan struct{})
	handler := zq.HandlerFunc(func(context.Context, *zq.Delivery) error {
		close(finished)
		return nil
	})
	c, err := zq.NewConsumer(rdb, "orders", zq.Chain{tr.Middleware()}.Then(handler), zq.ConsumerConfig{
		Observers: []zq.Observer{tr.Observer()},
	})
	check(err)
	check(c.Start(ctx))
	<-finished
	check(c.Stop(ctx))

	var sent, run sdktrace.ReadOnlySpan
	for _, s := range spans.Ended() {
		fmt.Println(s.Name(), s.SpanKind())
		switch s.Name() {
		case "send orders":
			sent = s
		case "process orders":
			run = s
		}
	}
	fmt.Println("linked:", run.Links()[0].SpanContext.SpanID() == sent.SpanContext().SpanID())
	// Unordered output:
	// send orders producer
	// receive orders client
	// process orders consumer
	// settle orders client
	// linked: true
}

// check keeps the example to its story; a program returns the error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
