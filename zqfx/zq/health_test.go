package zq_test

import (
	"context"
	"testing"

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
