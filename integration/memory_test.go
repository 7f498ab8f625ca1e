package integration_test

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// sized is how many messages a measurement takes; enough that what a queue costs by itself does not show.
const sized = 50_000

// BenchmarkMemory says what a message with a body of 100 bytes costs in Redis, by where it is: docs/operations has the
// table. Run it with -benchtime 1x.
func BenchmarkMemory(b *testing.B) {
	b.Run("queued", func(b *testing.B) { weigh(b, func(int) zq.Message { return zq.Message{} }, nil) })
	b.Run("keyed, 100 a key", func(b *testing.B) {
		weigh(b, func(i int) zq.Message { return zq.Message{Key: fmt.Sprint("customer-", i/100)} }, nil)
	})
	b.Run("keyed, 1 a key", func(b *testing.B) {
		weigh(b, func(i int) zq.Message { return zq.Message{Key: fmt.Sprint("customer-", i)} }, nil)
	})
	b.Run("keyed, 1 a key, listpacks of 128 bytes", func(b *testing.B) {
		weigh(b, func(i int) zq.Message { return zq.Message{Key: fmt.Sprint("customer-", i)} }, nil,
			"zset-max-listpack-value", "128")
	})
	b.Run("delayed", func(b *testing.B) { weigh(b, func(int) zq.Message { return zq.Message{Delay: time.Hour} }, nil) })
	b.Run("dead", func(b *testing.B) {
		weigh(b, func(int) zq.Message { return zq.Message{} }, func(context.Context, *zq.Delivery) error {
			return zq.Dead("rejected", nil)
		})
	})
	b.Run("deduplicated", func(b *testing.B) {
		weigh(b, func(i int) zq.Message { return zq.Message{ID: fmt.Sprintf("order-%08d", i)} },
			func(context.Context, *zq.Delivery) error { return nil })
	})
}

// weigh sends messages, runs them if there is a handler, and reports what each costs.
func weigh(b *testing.B, message func(i int) zq.Message, handle zq.HandlerFunc, setting ...string) {
	b.Helper()
	for b.Loop() {
		rdb := zqt.Redis(b).Client()
		if len(setting) == 2 {
			if err := rdb.ConfigSet(b.Context(), setting[0], setting[1]).Err(); err != nil {
				b.Fatal(err)
			}
		}
		p, err := zq.NewProducer(rdb, "sized")
		if err != nil {
			b.Fatal(err)
		}
		before := usedMemory(b, rdb)
		for from := 0; from < sized; from += 1000 {
			batch := make([]zq.Message, 1000)
			for i := range batch {
				batch[i] = message(from + i)
				batch[i].Body = bytes.Repeat([]byte("x"), 100)
			}
			if _, err := p.EnqueueBatch(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
		}
		if handle != nil {
			workOff(b, rdb, handle)
		}
		b.ReportMetric(float64(usedMemory(b, rdb)-before)/sized, "B/message")
	}
}

func workOff(b *testing.B, rdb *redis.Client, handle zq.HandlerFunc) {
	b.Helper()
	c, err := zq.NewConsumer(rdb, "sized", handle, zq.ConsumerConfig{Concurrency: 50})
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	look, err := zq.NewInspector(rdb, "sized")
	if err != nil {
		b.Fatal(err)
	}
	zqt.Eventually(b, time.Minute, func() bool {
		depth, err := look.Depth(b.Context())
		return err == nil && depth.Unfinished() == 0
	}, "the queue is worked off")
	if err := c.Stop(b.Context()); err != nil {
		b.Fatal(err)
	}
}

func usedMemory(b *testing.B, rdb *redis.Client) int64 {
	b.Helper()
	info, err := rdb.Info(b.Context(), "memory").Result()
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory:"); ok {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return n
		}
	}
	b.Fatal("no used_memory")
	return 0
}
