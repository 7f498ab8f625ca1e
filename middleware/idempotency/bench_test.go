package idempotency_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// BenchmarkIdempotency works messages off at a concurrency of 100, in turns without and with the middleware, each
// message with a key of its own; one operation is one message of each. "ratio" is the time with by the time without.
func BenchmarkIdempotency(b *testing.B) {
	x := newTrial(b)
	mw, err := idempotency.New(x.store, idempotency.FromHeader("order"))
	x.must(err)
	var took [2]time.Duration
	const most = 20_000 // a turn; turns alternate, so that the machine's moods meet both
	at := 0
	b.ResetTimer()
	for left := b.N; left > 0; left -= most {
		n := min(left, most)
		for which, chain := range []zq.Chain{{}, {mw}} {
			b.StopTimer()
			fill(b, x, at, n)
			at += n
			b.StartTimer()
			took[which] += drain(b, x, chain, n)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(took[0].Nanoseconds())/float64(b.N), "bare-ns/op")
	b.ReportMetric(float64(took[1].Nanoseconds())/float64(b.N), "with-ns/op")
	b.ReportMetric(float64(took[1])/float64(took[0]), "ratio")
}

func fill(b *testing.B, x *trial, from, n int) {
	b.Helper()
	for at := 0; at < n; at += 1000 {
		msgs := make([]zq.Message, min(1000, n-at))
		for i := range msgs {
			msgs[i].Body = make([]byte, 100)
			msgs[i].Headers = map[string]string{"order": fmt.Sprint("order-", from+at+i)}
		}
		_, err := x.prod.EnqueueBatch(b.Context(), msgs)
		x.must(err)
	}
}

// drain works n messages off and gives the time that took, acks included.
func drain(b *testing.B, x *trial, chain zq.Chain, n int) time.Duration {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	done := make(chan struct{})
	handler := chain.Then(zq.HandlerFunc(func(context.Context, *zq.Delivery) error {
		if left.Add(-1) == 0 {
			close(done)
		}
		return nil
	}))
	c, err := zq.NewConsumer(x.rdb, x.queue, handler, zq.ConsumerConfig{
		Concurrency: 100, Logger: slog.New(slog.DiscardHandler),
	})
	x.must(err)
	began := time.Now()
	x.must(c.Start(b.Context()))
	<-done
	x.must(c.Stop(context.Background()))
	return time.Since(began)
}
