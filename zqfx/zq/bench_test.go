package zq_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// benchBody is the payload of every benchmark, in bytes.
const benchBody = 100

func benchQueue(b *testing.B) (*redis.Client, string, *zq.Producer) {
	b.Helper()
	rdb := zqtest.Redis(b).Client()
	p, err := zq.NewProducer(rdb, "bench")
	if err != nil {
		b.Fatal(err)
	}
	return rdb, "bench", p
}

func fill(b *testing.B, p *zq.Producer, n, keys int) {
	b.Helper()
	for at := 0; at < n; at += 1000 {
		msgs := make([]zq.Message, min(1000, n-at))
		for i := range msgs {
			msgs[i].Body = make([]byte, benchBody)
			if keys > 0 {
				msgs[i].Key = fmt.Sprint("key-", (at+i)%keys)
			}
		}
		if _, err := p.EnqueueBatch(b.Context(), msgs); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEnqueue sends one message a call, from one caller and from sixteen at once.
func BenchmarkEnqueue(b *testing.B) {
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			_, _, p := benchQueue(b)
			m := zq.Message{Body: make([]byte, benchBody)}
			b.SetParallelism((callers + 1) / 2) // of two processors
			if callers == 1 {
				for b.Loop() {
					if _, err := p.Enqueue(b.Context(), m); err != nil {
						b.Fatal(err)
					}
				}
				return
			}
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := p.Enqueue(b.Context(), m); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// BenchmarkEnqueueBatch sends a thousand messages a call; one operation is one message.
func BenchmarkEnqueueBatch(b *testing.B) {
	for _, keys := range []int{0, 10_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			_, _, p := benchQueue(b)
			b.ResetTimer()
			fill(b, p, b.N, keys)
		})
	}
}

// BenchmarkDrain works messages off with a handler that does nothing, every one acked; one operation is one
// message.
func BenchmarkDrain(b *testing.B) {
	for _, c := range []struct{ concurrency, keys int }{{1, 0}, {10, 0}, {100, 0}, {10, 1}, {10, 100}, {10, 10_000}} {
		b.Run(fmt.Sprintf("concurrency=%d/keys=%d", c.concurrency, c.keys), func(b *testing.B) {
			rdb, queue, p := benchQueue(b)
			fill(b, p, b.N, c.keys)
			var left atomic.Int64
			left.Store(int64(b.N))
			done := make(chan struct{})
			handler := zq.HandlerFunc(func(context.Context, *zq.Delivery) error {
				if left.Add(-1) == 0 {
					close(done)
				}
				return nil
			})
			consumer, err := zq.NewConsumer(rdb, queue, handler, zq.ConsumerConfig{Concurrency: c.concurrency})
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			if err := consumer.Start(b.Context()); err != nil {
				b.Fatal(err)
			}
			<-done
			if err := consumer.Stop(context.Background()); err != nil { // every ack recorded
				b.Fatal(err)
			}
		})
	}
}
