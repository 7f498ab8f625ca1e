package zq_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// A consumer that cannot reach Redis says so, and is well again when it can, though its queue is empty and no message
// tells it.
func TestHealthFollowsRedisOnAnEmptyQueue(t *testing.T) {
	t.Parallel()
	proxy := zqtest.Proxy(t, zqtest.Shared(t).Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	b := benchOn(t, rdb)
	c := b.work(zq.ConsumerConfig{}, func(context.Context, *zq.Delivery) error { return nil })
	is := func(want string) func() bool {
		return func() bool {
			state, trouble := c.Health()
			return state == want && (len(trouble) > 0) == (want == "degraded")
		}
	}
	zqtest.Eventually(t, limit, is("idle"), "it waits for work")
	proxy.Cut()
	zqtest.Eventually(t, limit, is("degraded"), "it has lost Redis")
	proxy.Heal()
	zqtest.Eventually(t, limit, is("idle"), "it is well again")
}

// An outcome that could not be recorded before its lease was over is somebody else's by then: no trouble of this
// consumer any more.
func TestHealthAfterAnOutcomeIsGivenUp(t *testing.T) {
	t.Parallel()
	proxy := zqtest.Proxy(t, zqtest.Shared(t).Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = rdb.Close() })
	b := benchOn(t, rdb)
	b.enqueue(zq.Message{ID: "m"})
	running, goOn := make(chan struct{}, 10), make(chan struct{})
	failed := make(chan struct{}, 1)
	observer := zq.Observer{Failed: func(call string, _ error) {
		if call == "settle" {
			select {
			case failed <- struct{}{}:
			default:
			}
		}
	}}
	c := b.work(zq.ConsumerConfig{Lease: time.Second, Observers: []zq.Observer{observer}}, func(context.Context, *zq.Delivery) error {
		running <- struct{}{}
		<-goOn
		return nil
	})
	zqtest.Wait(t, running, limit)
	proxy.Cut()
	close(goOn)
	trouble := func(with string) bool {
		_, trouble := c.Health()
		return slices.Contains(trouble, with)
	}
	zqtest.Wait(t, failed, limit)
	zqtest.Eventually(t, limit, func() bool { return !trouble("settle") }, "it is given up")
	if !trouble("heartbeat") && !trouble("claim") && !trouble("wait") {
		t.Error("nothing else fails, so the trouble may have gone with the outage")
	}
	proxy.Heal()
}
