package zq_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// A dead letter says why it died, and can be sent back to work once the cause is mended.
func ExampleInspector_Replay() {
	ctx := context.Background()
	server, err := zqtest.StartEmbedded()
	check(err)
	defer server.Close()
	rdb := server.Client()
	p, err := zq.NewProducer(rdb, "orders")
	check(err)
	in, err := zq.NewInspector(rdb, "orders")
	check(err)

	mended, results := false, make(chan string, 1)
	handler := zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		if !mended {
			return zq.Dead("currency", errors.New("no rate for XXX"))
		}
		results <- fmt.Sprintf("%s ran again, attempt %d, replays %d", d.ID, d.Attempt, d.Replays)
		return nil
	})
	work := func() *zq.Consumer {
		c, err := zq.NewConsumer(rdb, "orders", handler, zq.ConsumerConfig{})
		check(err)
		check(c.Start(ctx))
		return c
	}

	_, err = p.Enqueue(ctx, zq.Message{ID: "o-1", Key: "customer-7", Body: []byte("12.50 XXX")})
	check(err)
	c := work()
	for range time.Tick(time.Millisecond) {
		if info, err := in.Message(ctx, "o-1"); err == nil && info.State == zq.StateDead {
			break
		}
	}
	check(c.Stop(ctx))
	letters, err := in.DeadLetters(ctx, time.Time{}, 10)
	check(err)
	for _, l := range letters {
		fmt.Printf("%s of %s: %s: %s\n", l.Message.ID, l.Message.Key, l.Reason, l.Error)
	}

	mended = true
	check(in.Replay(ctx, "o-1"))
	c = work()
	fmt.Println(<-results)
	check(c.Stop(ctx))
	report, err := in.Verify(ctx, 0)
	check(err)
	fmt.Println("messages", report.Messages, "problems", len(report.Problems))
	// Output:
	// o-1 of customer-7: currency: no rate for XXX
	// o-1 ran again, attempt 1, replays 1
	// messages 0 problems 0
}

// Sizes and totals, as a dashboard reads them.
func ExampleInspector_Depth() {
	ctx := context.Background()
	server, err := zqtest.StartEmbedded()
	check(err)
	defer server.Close()
	rdb := server.Client()
	p, err := zq.NewProducer(rdb, "orders")
	check(err)
	batch := []zq.Message{
		{ID: "a", Key: "k"}, {ID: "b", Key: "k"}, {ID: "c"}, {ID: "d", Delay: time.Hour}, {ID: "a"}, {ID: "bad\n"},
	}
	results, err := p.EnqueueBatch(ctx, batch)
	check(err)
	for _, r := range results {
		if r.Duplicate || r.Err != nil {
			fmt.Println(r.ID, r.State, r.Err)
		}
	}
	in, err := zq.NewInspector(rdb, "orders")
	check(err)
	d, err := in.Depth(ctx)
	check(err)
	n, err := in.Counters(ctx)
	check(err)
	fmt.Println("pending", d.Pending, "ready", d.Ready, "delayed", d.Delayed)
	fmt.Println("enqueued", n.Enqueued, "duplicates", n.Duplicates)
	// Output:
	// a pending <nil>
	//   zq: message.id is "bad\n", want at most 256 bytes of UTF-8 without control characters
	// pending 3 ready 2 delayed 1
	// enqueued 4 duplicates 1
}
