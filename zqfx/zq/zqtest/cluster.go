package zqtest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// clusterSlots is how many slots a Redis Cluster has.
const clusterSlots = 16384

// How many milliseconds a node is not heard of before it is taken to be down: as
// few as a loaded machine allows.
const clusterNodeTimeout = "1000"

// RedisCluster is three masters with a replica each, on loopback. A failover
// after a kill takes two to three seconds, one that is asked for a few
// milliseconds. Which node is a key's master changes; ask. What fails, fails the
// test. Call it from the goroutine of the test.
type RedisCluster struct {
	fleet
}

// Cluster starts a cluster and returns when all its slots are served and every
// replica follows. All of it is gone when the test ends.
func Cluster(t testing.TB, opts ...ServerOption) *RedisCluster {
	t.Helper()
	c := &RedisCluster{fleet{t: t}}
	t.Cleanup(func() { c.end() })
	opts = slices.Concat(replicating(), []ServerOption{
		WithConfig("cluster-node-timeout", clusterNodeTimeout), WithConfig("cluster-replica-validity-factor", "0"),
		WithConfig("cluster-allow-replica-migration", "no"), WithConfig("cluster-require-full-coverage", "no"),
	}, opts)
	for range 6 {
		c.add(opts...).in.bus = true
	}
	c.start(c.servers...)
	if err := c.form(); err != nil {
		t.Fatalf("zqtest: cluster: %v", err)
	}
	masters, replicas := c.servers[:3], c.servers[3:]
	c.await("every node knows every other", func() error { return c.each(knowsAll(len(c.servers))) })
	c.await("every replica has a master", func() error { return c.pair(masters, replicas) })
	c.AwaitHealthy()
	return c
}

// form gives the masters their slots and epochs and introduces the nodes.
func (c *RedisCluster) form() error {
	first := c.servers[0].in
	host, port := hostPort(first.addr())
	for i, s := range c.servers {
		err := s.in.talk(patience, func(a *asker) {
			if i < 3 {
				from, to := i*clusterSlots/3, (i+1)*clusterSlots/3-1
				a.do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(from), strconv.Itoa(to))
			}
			a.do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
			if i > 0 {
				a.do("CLUSTER", "MEET", host, port, strconv.Itoa(first.busPort))
			}
		})
		if err != nil {
			return fmt.Errorf("%s: %w", s.Addr(), err)
		}
	}
	return nil
}

// pair makes each replica follow its master, as soon as it knows it.
func (c *RedisCluster) pair(masters, replicas []*Server) error {
	for i, r := range replicas {
		self, err := masters[i].self()
		if err != nil {
			return err
		}
		if _, err := r.command("CLUSTER", "REPLICATE", self.id); err != nil {
			return err
		}
	}
	return nil
}

// each asks every node that runs, and gives the first complaint.
func (c *RedisCluster) each(check func(*Server) error) error {
	for _, s := range alive(c.servers) {
		if err := check(s); err != nil {
			return err
		}
	}
	return nil
}

func knowsAll(n int) func(*Server) error {
	return func(s *Server) error {
		nodes, err := s.view()
		if err == nil && (len(nodes) != n || slices.ContainsFunc(nodes, func(m member) bool { return m.has("handshake") })) {
			err = fmt.Errorf("%s knows %d nodes", s.Addr(), len(nodes))
		}
		return err
	}
}

// Options are fresh go-redis options that reach the cluster, defaults otherwise.
func (c *RedisCluster) Options() *redis.ClusterOptions {
	o := &redis.ClusterOptions{}
	for _, s := range c.servers {
		o.Addrs = append(o.Addrs, s.Addr())
	}
	o.Password, o.TLSConfig = c.servers[0].in.password, c.servers[0].TLSConfig()
	return o
}

// Client is a new go-redis client of the cluster, closed when the test ends. Each
// change is applied to its options first.
func (c *RedisCluster) Client(changes ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	opts := c.Options()
	for _, change := range changes {
		change(opts)
	}
	rdb := redis.NewClusterClient(opts)
	c.t.Cleanup(func() { _ = rdb.Close() }) // the test may have closed it
	return rdb
}

// Nodes are all six, whatever they are now.
func (c *RedisCluster) Nodes() []*Server { return slices.Clone(c.servers) }

// Master is the node that serves a key now; it waits for a failover that is under
// way.
func (c *RedisCluster) Master(key string) *Server {
	c.t.Helper()
	var master *Server
	c.await("a master of "+key, func() (err error) {
		master, err = c.owner(Slot(key))
		return err
	})
	return master
}

// owner is who takes itself for a slot's master: of several the newest.
func (c *RedisCluster) owner(slot int) (*Server, error) {
	var owner *Server
	newest := int64(-1)
	for _, s := range alive(c.servers) {
		self, err := s.self()
		if err == nil && self.has("master") && self.serves(slot) && self.epoch > newest {
			owner, newest = s, self.epoch
		}
	}
	if owner == nil {
		return nil, fmt.Errorf("nobody serves slot %d", slot)
	}
	return owner, nil
}

// Replicas are the nodes that follow a key's master and run.
func (c *RedisCluster) Replicas(key string) []*Server {
	c.t.Helper()
	master, err := c.Master(key).self()
	if err != nil {
		c.t.Fatalf("zqtest: %v", err)
	}
	return slices.DeleteFunc(alive(c.servers), func(s *Server) bool {
		self, err := s.self()
		return err != nil || self.master != master.id
	})
}

// Others are the masters that do not serve the key.
func (c *RedisCluster) Others(key string) []*Server {
	c.t.Helper()
	master := c.Master(key)
	return slices.DeleteFunc(alive(c.servers), func(s *Server) bool {
		self, err := s.self()
		return err != nil || s == master || !self.has("master") || len(self.slots) == 0
	})
}

// AwaitHealthy waits until every node that runs finds the cluster in order, all
// agree on who serves what, and each replica follows its master.
func (c *RedisCluster) AwaitHealthy() {
	c.t.Helper()
	c.await("the cluster is healthy", func() error {
		var agreed string
		return c.each(func(s *Server) error {
			state, err := s.command("CLUSTER", "INFO")
			if err != nil {
				return err
			}
			if !strings.Contains(state[0], "cluster_state:ok") {
				return errors.New(s.Addr() + ": the cluster is down")
			}
			nodes, err := s.view()
			if err != nil {
				return err
			}
			if served := serving(nodes); agreed == "" {
				agreed = served
			} else if agreed != served {
				return errors.New(s.Addr() + " has another view of who serves what")
			}
			role, err := s.role()
			if err == nil && role != "master" && role != "slave connected" {
				err = fmt.Errorf("%s is %q", s.Addr(), role)
			}
			return err
		})
	})
}
