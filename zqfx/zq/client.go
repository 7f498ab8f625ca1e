package zq

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Timeouts of the library's own connections. Each is far below the shortest sensible lease.
const (
	dialTimeout  = 2 * time.Second
	callTimeout  = 3 * time.Second
	blockedSlice = 5 * time.Second // how long one blocking pop waits at most
)

// ownClient makes a client to the same server as rdb, for calls whose timing must not depend on how the
// application set up or uses its own: no hidden retries, contexts obeyed, a pool that nobody else drains.
// For a client of an unknown type it gives rdb itself, and says that it is not its own.
func ownClient(rdb redis.UniversalClient, pool int) (client redis.UniversalClient, own bool) {
	switch c := rdb.(type) {
	case *redis.Client:
		o := *c.Options()
		o.MaxRetries, o.ContextTimeoutEnabled = -1, true
		o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns = pool, 0, 0, 0
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = dialTimeout, callTimeout, callTimeout, callTimeout
		// What go-redis has set up in these belongs to the application's client: a copy must not share it.
		o.PushNotificationProcessor, o.ClientSideCacheConfig, o.ClientSideCache = nil, nil, nil
		o.MaintNotificationsConfig = noNotices()
		return redis.NewClient(&o), true
	case *redis.ClusterClient:
		o := *c.Options()
		o.MaxRetries, o.ContextTimeoutEnabled = -1, true
		o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns = pool, 0, 0, 0
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = dialTimeout, callTimeout, callTimeout, callTimeout
		o.PushNotificationProcessor = nil
		o.MaintNotificationsConfig = noNotices()
		return redis.NewClusterClient(&o), true
	}
	return rdb, false
}

// noNotices switches go-redis's maintenance notices off: our calls are repeated in any case. The application's
// own setting cannot be copied, for its client writes to it while it connects.
func noNotices() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// pinned is a client whose pipelines go to the node of a key, so that WAIT follows the write it waits for, and
// which does not give a WAIT up that may take as long as within.
func pinned(ctx context.Context, rdb redis.UniversalClient, key string, within time.Duration) (redis.Cmdable, error) {
	c, ok := rdb.(*redis.Client)
	if cluster, is := rdb.(*redis.ClusterClient); is {
		node, err := cluster.MasterForKey(ctx, key)
		if err != nil {
			return nil, err
		}
		c, ok = node, true
	}
	if ok && c.Options().ReadTimeout > 0 { // else it waits for ever as it is
		return c.WithTimeout(c.Options().ReadTimeout + within), nil
	}
	if ok {
		return c, nil
	}
	return rdb, nil
}
