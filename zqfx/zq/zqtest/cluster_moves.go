package zqtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// FailoverMode is how a replica takes over from a master that runs.
type FailoverMode string

const (
	// Orderly lets the replica catch up while the master holds its clients; nothing
	// is lost.
	Orderly FailoverMode = ""
	// Force does not ask the master: what it has not passed on is lost.
	Force FailoverMode = "FORCE"
	// Takeover does not ask the other masters either.
	Takeover FailoverMode = "TAKEOVER"
)

// KillMaster ends a key's master with SIGKILL and returns it. Restart it when it
// has a successor, and it comes back as a replica; before that, it would come back
// as a master without data.
func (c *RedisCluster) KillMaster(key string) *Server {
	c.t.Helper()
	master := c.Master(key)
	master.Kill()
	return master
}

// Failover lets a replica take over from a key's master, and returns the new master
// when every node that runs knows it.
func (c *RedisCluster) Failover(key string, mode FailoverMode) *Server {
	c.t.Helper()
	old := c.Master(key)
	c.await("a replica takes over", func() error {
		replicas := c.Replicas(key)
		if len(replicas) == 0 {
			return fmt.Errorf("%s has no replica", old.Addr())
		}
		words := []string{"CLUSTER", "FAILOVER"}
		if mode != Orderly {
			words = append(words, string(mode))
		}
		_, err := replicas[0].command(words...)
		return err
	})
	return c.AwaitMaster(key, old)
}

// AwaitMaster waits until a key has another master than this one and every node that
// runs knows it, and returns it.
func (c *RedisCluster) AwaitMaster(key string, other *Server) *Server {
	c.t.Helper()
	var master *Server
	c.await("another master of "+key, func() (err error) {
		if master, err = c.owner(Slot(key)); err != nil {
			return err
		}
		if master == other {
			return fmt.Errorf("it is still %s", other.Addr())
		}
		return c.agreeOn(Slot(key), master)
	})
	return master
}

// agreeOn wants every node that runs to name a slot's master.
func (c *RedisCluster) agreeOn(slot int, master *Server) error {
	return c.each(func(s *Server) error {
		nodes, err := s.view()
		if err != nil {
			return err
		}
		i := slices.IndexFunc(nodes, func(m member) bool { return m.serves(slot) })
		if i < 0 || nodes[i].addr != master.Addr() {
			return fmt.Errorf("%s does not take %s for the master", s.Addr(), master.Addr())
		}
		return nil
	})
}

// MoveSlot moves a key's slot to another master while clients go on, the way
// resharding does it: batch keys at a time, at least 1. After each of its steps,
// the opening one and those without keys included, it calls between with the number
// of keys moved so far, if between is not nil: the slot is on the move then, and
// clients meet ASK and TRYAGAIN. When it returns all nodes know the new master.
func (c *RedisCluster) MoveSlot(key string, to *Server, batch int, between func(moved int)) {
	c.t.Helper()
	from, slot := c.Master(key), strconv.Itoa(Slot(key))
	source, err := from.self()
	c.must(err)
	target, err := to.self()
	c.must(err)
	c.order(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
	c.order(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
	moved := 0
	for {
		if between != nil {
			between(moved)
		}
		names := c.order(from, "CLUSTER", "GETKEYSINSLOT", slot, strconv.Itoa(max(batch, 1)))
		if len(names) == 0 {
			break
		}
		host, port := hostPort(to.Addr())
		c.order(from, append([]string{"MIGRATE", host, port, "", "0", "5000", "KEYS"}, names...)...)
		moved += len(names)
	}
	c.order(to, "CLUSTER", "SETSLOT", slot, "NODE", target.id)
	c.order(from, "CLUSTER", "SETSLOT", slot, "NODE", target.id)
	c.await("all know the new master of "+key, func() error { return c.agreeOn(Slot(key), to) })
}

// order tells a node to do what cannot be asked for twice.
func (c *RedisCluster) order(s *Server, words ...string) []string {
	c.t.Helper()
	var reply []string
	err := s.in.talk(patience, func(a *asker) { reply = a.do(words...) })
	if err != nil {
		c.t.Fatalf("zqtest: %s: %s: %v", s.Addr(), strings.Join(words[:min(len(words), 5)], " "), err)
	}
	return reply
}

func (c *RedisCluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("zqtest: cluster: %v", err)
	}
}
