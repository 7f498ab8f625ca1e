package zqtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// briskly is a client that gives up soon, for waits that ask again.
func briskly(o *redis.FailoverOptions) {
	o.MaxRetries, o.DialerRetries, o.DialTimeout, o.ReadTimeout = -1, 1, 500*time.Millisecond, 500*time.Millisecond
}

// writable waits until a write goes through.
func writable(t *testing.T, rdb redis.UniversalClient, key string) {
	t.Helper()
	zqtest.Eventually(t, limit, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return rdb.Set(ctx, key, "v", 0).Err() == nil
	}, "a write goes through")
}

func TestSentinelFailsOverWhenTheMasterIsKilled(t *testing.T) {
	t.Parallel()
	s := zqtest.Sentinel(t)
	if n := len(s.Replicas()); n != 2 || len(s.Sentinels()) != 3 {
		t.Fatalf("%d replicas, %d sentinels", n, len(s.Sentinels()))
	}
	rdb := s.Client(briskly)
	must(t, rdb.Set(t.Context(), "before", "v", 0).Err())
	must(t, rdb.Wait(t.Context(), 2, 5*time.Second).Err())

	old := s.KillMaster()
	master := s.AwaitMaster(old)
	if master == old || s.Master() != master {
		t.Fatalf("the master is %s", master.Addr())
	}
	writable(t, rdb, "after")
	if n := master.Client().Exists(t.Context(), "before", "after").Val(); n != 2 {
		t.Errorf("the new master has %d of 2 keys", n)
	}

	s.Rejoin(old)
	if n := old.Client().Exists(t.Context(), "before", "after").Val(); n != 2 {
		t.Errorf("the old master has %d of 2 keys", n)
	}
	if n := len(s.Replicas()); n != 2 {
		t.Errorf("%d replicas", n)
	}
}

func TestSentinelDemotesAMasterThatWakesUp(t *testing.T) {
	t.Parallel()
	s := zqtest.Sentinel(t)
	old := s.PauseMaster()
	master := s.AwaitMaster(old)
	old.Resume()
	s.Rejoin(old)
	if err := old.Client().Set(t.Context(), "k", "v", 0).Err(); !redis.HasErrorPrefix(err, "READONLY") {
		t.Errorf("the old master took a write: %v", err)
	}
	if again := s.Failover(); again != master {
		t.Errorf("the master was %s", again.Addr())
	}
	s.AwaitMaster(master)
}

func TestSentinelIsGoneAfterItsTest(t *testing.T) {
	t.Parallel()
	var addrs []string
	complaint := failing(t, func(t testing.TB) {
		s := zqtest.Sentinel(t)
		addrs = append(addrs, s.Master().Addr(), s.PauseMaster().Addr())
		for _, guard := range s.Sentinels() {
			addrs = append(addrs, guard.Addr())
		}
	})
	if complaint != "" {
		t.Fatal(complaint)
	}
	for _, addr := range addrs {
		refused(t, addr)
	}
}

func refused(t *testing.T, addr string) {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1})
	defer rdb.Close()
	if err := rdb.Ping(t.Context()).Err(); err == nil {
		t.Errorf("%s still answers", addr)
	}
}
