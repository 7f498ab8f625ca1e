package zqtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

func TestClusterServesAllSlotsAndFailsOver(t *testing.T) {
	t.Parallel()
	c := zqtest.Cluster(t)
	rdb := c.Client()
	for i := range 20 {
		must(t, rdb.Set(t.Context(), fmt.Sprint("k", i), i, 0).Err())
	}
	if a, b := c.Master("k0"), c.Others("k0"); len(b) != 2 || b[0] == a || b[1] == a || len(c.Replicas("k0")) != 1 {
		t.Fatalf("%d other masters, %d replicas", len(b), len(c.Replicas("k0")))
	}
	for _, mode := range []zqtest.FailoverMode{zqtest.Orderly, zqtest.Force, zqtest.Takeover} {
		old, replica := c.Master("k0"), c.Replicas("k0")[0]
		if master := c.Failover("k0", mode); master == old || master != replica || c.Master("k0") != master {
			t.Errorf("%q: the master is %s", mode, master.Addr())
		}
		c.AwaitHealthy()
	}
	if v := c.Client().Get(t.Context(), "k0").Val(); v != "0" {
		t.Errorf("k0 is %q", v)
	}
}

func TestClusterFailsOverWhenAMasterIsKilled(t *testing.T) {
	t.Parallel()
	c := zqtest.Cluster(t)
	must(t, c.Client().Set(t.Context(), "k", "v", 0).Err())
	old := c.KillMaster("k")
	if master := c.AwaitMaster("k", old); master == old {
		t.Errorf("the master is %s", master.Addr())
	}
	old.Restart()
	c.AwaitHealthy()
	if replicas := c.Replicas("k"); len(replicas) != 1 || replicas[0] != old {
		t.Errorf("%d replicas", len(replicas))
	}
}

// Where some of a slot's keys have gone, a client is sent after one of them, and told to try again for both.
func TestClusterMovesASlotStepByStep(t *testing.T) {
	t.Parallel()
	c := zqtest.Cluster(t)
	rdb := c.Client()
	names := make([]string, 7)
	for i := range names {
		names[i] = fmt.Sprintf("{tag}%d", i)
		must(t, rdb.Set(t.Context(), names[i], i, 0).Err())
	}
	from, to := c.Master("{tag}"), c.Others("{tag}")[0]
	source := from.Client(func(o *redis.Options) { o.MaxRetries = -1 })
	target := to.Client(func(o *redis.Options) { o.MaxRetries = -1 })
	slotsAgree(t, source)
	var seen []string
	c.MoveSlot("{tag}", to, 3, func(moved int) {
		here := int(source.DBSize(t.Context()).Val())
		gone := 0
		for _, name := range names {
			switch err := source.Get(t.Context(), name).Err(); {
			case redis.HasErrorPrefix(err, "ASK "):
				gone++
			case err != nil:
				t.Errorf("%s: %v", name, err)
			}
		}
		both := target.Pipeline()
		both.Do(t.Context(), "ASKING")
		found := both.MGet(t.Context(), names...)
		_, _ = both.Exec(t.Context()) // the error of MGET, which is looked at
		again := redis.HasErrorPrefix(found.Err(), "TRYAGAIN")
		seen = append(seen, fmt.Sprint(moved, gone, again, here >= len(names)-moved))
	})
	if got := strings.Join(seen, ", "); got != "0 0 true true, 3 3 true true, 6 6 true true, 7 7 false true" {
		t.Error(got)
	}
	if c.Master("{tag}") != to {
		t.Error("the slot has not moved")
	}
	for i, name := range names {
		if v := rdb.Get(t.Context(), name).Val(); v != fmt.Sprint(i) {
			t.Errorf("%s is %q", name, v)
		}
	}
}

// slotsAgree compares Slot with what a node says.
func slotsAgree(t *testing.T, node *redis.Client) {
	t.Helper()
	for _, key := range []string{"", "k", "{tag}", "a{tag}b", "{}x", "a{b", "}{x}", "{{x}}", "zq:{orders/3}:ready", "\x00\xff"} {
		want, err := node.ClusterKeySlot(t.Context(), key).Result()
		must(t, err)
		if got := zqtest.Slot(key); int64(got) != want {
			t.Errorf("slot of %q is %d, want %d", key, got, want)
		}
	}
}

func TestClusterIsGoneAfterItsTest(t *testing.T) {
	t.Parallel()
	var nodes []*zqtest.Server
	complaint := failing(t, func(t testing.TB) {
		c := zqtest.Cluster(t)
		nodes = c.Nodes()
		nodes[4].Pause()
		c.KillMaster("k")
	})
	if complaint != "" {
		t.Fatal(complaint)
	}
	for _, n := range nodes {
		refused(t, n.Addr())
	}
}
