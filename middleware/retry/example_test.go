package retry_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/zqueue/zqueue/middleware/retry"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

var errBusy = errors.New("the payment provider is busy")

// A charge is tried again while the provider is busy, and given up when the card is refused.
func ExampleNew() {
	ctx := context.Background()
	server, err := zqtest.StartEmbedded() // a real program connects to its Redis
	check(err)
	defer server.Close()
	rdb := server.Client()

	retries, err := retry.New(
		retry.Backoff(retry.Curve{Initial: time.Second, Max: 10 * time.Minute, Jitter: 0.2}),
		retry.MaxAge(24*time.Hour),
		retry.On(retry.Is(errBusy), retry.WithCurve(retry.Curve{Initial: 5 * time.Millisecond, Max: time.Second}, 5)),
		retry.OnRetry(func(_ context.Context, d *zq.Delivery, dec retry.Decision) {
			if dec.Action == zq.ActionRetry {
				fmt.Printf("%s attempt %d: again after %s\n", d.ID, d.Attempt, dec.After)
			}
		}),
	)
	check(err)

	finished := make(chan struct{})
	charge := zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		switch {
		case d.ID == "o-1" && d.Attempt < 3:
			return errBusy
		case d.ID == "o-2":
			return backoff.Permanent(errors.New("the card is refused"))
		case d.ID == "o-3":
			close(finished)
		}
		return nil
	})
	p, err := zq.NewProducer(rdb, "charges")
	check(err)
	for _, id := range []string{"o-1", "o-2", "o-3"} {
		_, err = p.Enqueue(ctx, zq.Message{ID: id, Key: "customer-7"})
		check(err)
	}
	consumer, err := zq.NewOrderedConsumer(rdb, "charges", zq.Chain{retries}.Then(charge), zq.OrderedConfig{})
	check(err)
	check(consumer.Start(ctx))
	<-finished
	check(consumer.Stop(ctx))

	look, err := zq.NewInspector(rdb, "charges")
	check(err)
	letter, err := look.DeadLetter(ctx, "o-2")
	check(err)
	fmt.Println("dead letter:", letter.Reason+":", letter.Error)
	// Output:
	// o-1 attempt 1: again after 5ms
	// o-1 attempt 2: again after 10ms
	// dead letter: permanent: the card is refused
}

// A curve without the middleware.
func ExampleCurve() {
	curve := retry.Curve{Initial: time.Second, Max: time.Minute, Multiplier: 3}
	for attempt := 1; attempt <= 6; attempt++ {
		fmt.Print(curve.Delay("o-1", attempt), " ")
	}
	cfg := zq.ConsumerConfig{RetryDelay: curve.RetryDelay}
	fmt.Println(cfg.RetryDelay(&zq.Delivery{ID: "o-1", Attempt: 2}, nil))
	// Output:
	// 1s 3s 9s 27s 1m0s 1m0s 3s
}

// check keeps the examples to their story; a program returns the error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
