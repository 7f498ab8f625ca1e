package zqfx_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// What is logged at the start about the eviction policy.
func TestStartWarnsOfEviction(t *testing.T) {
	t.Parallel()
	const warning, unknown = "Redis may evict queued messages", "cannot ask for the eviction policy"
	cases := map[string]struct {
		policy string
		rules  []string // of the user
		want   string   // of the two
	}{
		"noeviction":                     {"noeviction", nil, ""},
		"allkeys-lru":                    {"allkeys-lru", nil, warning},
		"volatile-ttl":                   {"volatile-ttl", nil, warning},
		"CONFIG is forbidden":            {"allkeys-lru", []string{"-config"}, warning},
		"CONFIG is forbidden, no danger": {"noeviction", []string{"-config"}, ""},
		"CONFIG and INFO are forbidden":  {"allkeys-lru", []string{"-config", "-info"}, unknown},
		"both are forbidden, no danger":  {"noeviction", []string{"-config", "-info"}, unknown},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := zqtest.Redis(t, zqtest.WithConfig("maxmemory-policy", c.policy))
			var rdb *redis.Client
			if c.rules == nil {
				rdb = server.Client()
			} else {
				rdb = limitedUser(t, server, c.rules...)
			}
			run, _ := reporting()
			app, log := begun(t, client(rdb), plain(), zqfx.Module(), zqfx.HandleFunc(zqtest.Queue(t), Placed, run))
			defer stopped(t, app)
			for _, text := range []string{warning, unknown} {
				if strings.Contains(log.String(), text) != (c.want == text) {
					t.Errorf("want %q and no other; was logged:\n%s", c.want, log)
				}
			}
			if c.want == warning {
				log.says(t, "level=WARN", "maxmemory_policy="+c.policy)
			}
		})
	}
}

// A server that stops answering this one question does not hold up the start.
func TestStartDoesNotWaitForTheEvictionPolicy(t *testing.T) {
	t.Parallel()
	proxy := zqtest.Proxy(t, zqtest.Shared(t).Addr())
	rdb := zqtest.Shared(t).Client(func(o *redis.Options) { o.Addr, o.MaxRetries = proxy.Addr(), -1 })
	held := proxy.HoldReply(zqtest.Command("CONFIG"))
	defer held.Release()
	run, _ := reporting()
	began := time.Now()
	app, log := begun(t, client(rdb), plain(), zqfx.Module(), zqfx.HandleFunc(zqtest.Queue(t), Placed, run))
	if took := time.Since(began); took > 2500*time.Millisecond { // go-redis waits 3 s for a reply
		t.Errorf("the start took %v", took)
	}
	log.says(t, "cannot ask for the eviction policy")
	stopped(t, app)
}
