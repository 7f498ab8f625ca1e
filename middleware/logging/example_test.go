package logging_test

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/zqueue/zqueue/middleware/logging"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// A line for each run, and lines of the handler's own that tell the message.
func ExampleNew() {
	ctx := context.Background()
	server, err := zqtest.StartEmbedded() // a real program connects to its Redis
	check(err)
	defer server.Close()
	rdb := server.Client()

	text := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: timeless})
	logs, err := logging.New(logging.Logger(slog.New(logging.Correlated(text)))) // with trace_id and span_id, if there is a span
	check(err)
	finished := make(chan struct{})
	handler := zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
		if d.Attempt == 1 {
			return zq.RetryAfter(5*time.Millisecond, context.DeadlineExceeded)
		}
		logging.From(ctx).InfoContext(ctx, "charged", "cents", 1999)
		close(finished)
		return nil
	})
	p, err := zq.NewProducer(rdb, "orders")
	check(err)
	_, err = p.Enqueue(ctx, zq.Message{ID: "o-1", Kind: "order.placed", Body: []byte("never logged")})
	check(err)
	consumer, err := zq.NewConsumer(rdb, "orders", zq.Chain{logs}.Then(handler), zq.ConsumerConfig{
		MaxAttempts: 3, Logger: slog.New(slog.DiscardHandler),
	})
	check(err)
	check(consumer.Start(ctx))
	<-finished
	check(consumer.Stop(ctx))
	// Output:
	// level=WARN msg="zq: run ended" queue=orders kind=order.placed message_id=o-1 attempt=1 max_attempts=3 outcome=retry delay=5ms error="retry after 5ms: context deadline exceeded"
	// level=INFO msg=charged queue=orders kind=order.placed message_id=o-1 attempt=2 max_attempts=3 cents=1999
	// level=INFO msg="zq: run ended" queue=orders kind=order.placed message_id=o-1 attempt=2 max_attempts=3 outcome=ack
}

// timeless leaves out what is another each time.
func timeless(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey || a.Key == "duration" {
		return slog.Attr{}
	}
	return a
}

// check keeps the examples to their story; a program returns the error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
