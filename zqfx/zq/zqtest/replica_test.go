package zqtest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

func TestReplicaFollowsAndLagsBehindASlowLink(t *testing.T) {
	t.Parallel()
	master := zqtest.Redis(t)
	rdb := master.Client()
	must(t, rdb.Set(t.Context(), "old", "v", 0).Err())
	r := zqtest.Replica(t, master)
	if v := r.Client().Get(t.Context(), "old").Val(); v != "v" || r.Lag() != 0 {
		t.Fatalf("old is %q, lag %d", v, r.Lag())
	}
	const far = 150 * time.Millisecond
	r.Link.Delay(far)
	sent := time.Now()
	must(t, rdb.Set(t.Context(), "k", "v", 0).Err())
	if n := rdb.Wait(t.Context(), 1, 10*time.Second).Val(); n != 1 || time.Since(sent) < far {
		t.Errorf("%d replicas confirmed after %v", n, time.Since(sent))
	}
	r.Link.Heal()
	r.AwaitSync()
}

func TestReplicaAndMasterAreTwoBrainsWhenTheLinkIsHeld(t *testing.T) {
	t.Parallel()
	master := zqtest.Redis(t, zqtest.WithConfig("requirepass", "pw"))
	r := zqtest.Replica(t, master)
	a, b := master.Client(), r.Client()
	r.Link.Hold()
	for i := range 10 {
		must(t, a.Set(t.Context(), fmt.Sprint("k", i), "v", 0).Err())
	}
	if n := a.Wait(t.Context(), 1, 50*time.Millisecond).Val(); n != 0 || r.Lag() == 0 {
		t.Errorf("%d replicas confirmed, lag %d", n, r.Lag())
	}
	r.Promote()
	must(t, b.Set(t.Context(), "other", "v", 0).Err())
	r.Link.Heal()
	if n := b.DBSize(t.Context()).Val(); n != 1 {
		t.Errorf("the new master has %d keys", n)
	}
}

func TestReplicaComesBackAfterACut(t *testing.T) {
	t.Parallel()
	master := zqtest.Redis(t)
	r := zqtest.Replica(t, master)
	r.Link.Cut()
	must(t, master.Client().Set(t.Context(), "k", "v", 0).Err())
	if n := r.Client().Exists(t.Context(), "k").Val(); n != 0 {
		t.Error("a write went over a link that is cut")
	}
	r.Link.Heal()
	r.AwaitSync()
	if n := r.Client().Exists(t.Context(), "k").Val(); n != 1 {
		t.Error("the replica lacks a key")
	}
}

func TestServerFollowsAndLeads(t *testing.T) {
	t.Parallel()
	a, b := zqtest.Redis(t), zqtest.Redis(t)
	must(t, a.Client().Set(t.Context(), "k", "v", 0).Err())
	b.Follow(a)
	rdb := b.Client(func(o *redis.Options) { o.MaxRetries = -1 })
	if v := rdb.Get(t.Context(), "k").Val(); v != "v" {
		t.Errorf("k is %q", v)
	}
	if err := rdb.Set(t.Context(), "k", "w", 0).Err(); !redis.HasErrorPrefix(err, "READONLY") {
		t.Errorf("a replica took a write: %v", err)
	}
	b.Follow(nil)
	must(t, rdb.Set(t.Context(), "k", "w", 0).Err())
}
