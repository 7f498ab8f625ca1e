package script_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// A replica that clients still talk to after a failover refuses every write, and answers what only reads.
func TestDamageReadOnly(t *testing.T) {
	t.Parallel()
	master := zqtest.Redis(t)
	host, port, err := net.SplitHostPort(master.Addr())
	if err != nil {
		t.Fatal(err)
	}
	copied := zqtest.Redis(t, zqtest.WithConfig("replicaof", host, port)).Client()
	rdb, set := master.Client(), virtualSet()
	for _, c := range scriptCases() {
		s := freshQueue(t, rdb, set)
		member, want := c.lookUp(s), s.dump(t)
		replica := s.withClient(copied)
		zqtest.Eventually(t, 10*time.Second, func() bool { return len(replica.dump(t)) == len(want) && s.replicated() },
			"the replica has it all")
		err := c.run(replica, member)
		if c.reads {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "READONLY") {
			t.Errorf("%s: want READONLY, got %v", c.name, err)
		}
		noChange(t, want, replica.dump(t))
		got, err := replica.enqueue("known", placements(1, "d1", "dc", "d2"))
		if err != nil || got.States != "aaa" {
			t.Errorf("a call that was made before: %+v, %v", got, err)
		}
	}
}

// replicated tells whether a replica has what was written so far.
func (s *store) replicated() bool {
	n, err := s.rdb.Wait(s.ctx, 1, 10*time.Millisecond).Result()
	return err == nil && n == 1
}
