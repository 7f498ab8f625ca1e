package zqtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// sentinelName is what the sentinels call the master.
const sentinelName = "zq"

// How long a master is not heard of before its sentinels believe that it is
// down: as short as a loaded machine allows.
const sentinelDownAfter = "1000"

// SentinelTrio is a master with two replicas, watched by three sentinels, all on
// loopback. A failover takes one to two seconds. Which node is the master
// changes; ask. What fails, fails the test. Call it from the goroutine of the
// test.
type SentinelTrio struct {
	fleet
	nodes, sentinels []*Server
}

// Sentinel starts a trio and returns when every sentinel knows all the others
// and both replicas. All of it is gone when the test ends.
func Sentinel(t testing.TB, opts ...ServerOption) *SentinelTrio {
	t.Helper()
	s := &SentinelTrio{fleet: fleet{t: t}}
	t.Cleanup(func() { s.end() })
	opts = append(replicating(), opts...)
	for range 3 {
		s.nodes = append(s.nodes, s.add(opts...))
	}
	s.start(s.nodes[0])
	for _, replica := range s.nodes[1:] {
		replica.in.master = s.nodes[0].Addr()
	}
	host, port := hostPort(s.nodes[0].Addr())
	for range 3 {
		guard := s.add()
		guard.in.sentinel = strings.Join([]string{
			"sentinel monitor " + sentinelName + " " + host + " " + port + " 2",
			"sentinel down-after-milliseconds " + sentinelName + " " + sentinelDownAfter,
			"sentinel failover-timeout " + sentinelName + " 3000",
			"sentinel parallel-syncs " + sentinelName + " 2\n",
		}, "\n")
		s.sentinels = append(s.sentinels, guard)
	}
	s.start(slices.Concat(s.nodes[1:], s.sentinels)...)
	s.hasten()
	s.await("the sentinels know everybody", s.complete)
	return s
}

// hasten has the sentinels ask, tell and try more often. They ping no more often
// than this: much faster, and a replica's last word is too old to promote it.
func (s *SentinelTrio) hasten() {
	s.t.Helper()
	for _, guard := range s.sentinels {
		_, err := guard.command("SENTINEL", "DEBUG", "info-period", "100", "publish-period", "200",
			"ask-period", "200", "ping-period", "300")
		if err != nil {
			s.t.Fatalf("zqtest: sentinel: %v", err)
		}
	}
}

// complete says what a sentinel lacks.
func (s *SentinelTrio) complete() error {
	for _, guard := range s.sentinels {
		words, err := guard.command("SENTINEL", "MASTER", sentinelName)
		if err != nil {
			return err
		}
		m := pairs(words)
		if m["num-slaves"] != "2" || m["num-other-sentinels"] != "2" || m["flags"] != "master" {
			return fmt.Errorf("%s knows %s replicas and %s sentinels, and its master is %q",
				guard.Addr(), m["num-slaves"], m["num-other-sentinels"], m["flags"])
		}
	}
	for _, node := range s.nodes[1:] {
		if err := node.is("slave connected"); err != nil {
			return err
		}
	}
	return nil
}

// Options are fresh go-redis options that reach the master, defaults otherwise.
func (s *SentinelTrio) Options() *redis.FailoverOptions {
	o := &redis.FailoverOptions{MasterName: sentinelName}
	for _, guard := range s.sentinels {
		o.SentinelAddrs = append(o.SentinelAddrs, guard.Addr())
	}
	return o
}

// Client is a new go-redis client of the master, whichever it is, closed when the
// test ends. Each change is applied to its options first.
func (s *SentinelTrio) Client(changes ...func(*redis.FailoverOptions)) *redis.Client {
	opts := s.Options()
	for _, change := range changes {
		change(opts)
	}
	rdb := redis.NewFailoverClient(opts)
	s.t.Cleanup(func() { _ = rdb.Close() }) // the test may have closed it
	return rdb
}

// MasterName is what the sentinels call the master.
func (s *SentinelTrio) MasterName() string { return sentinelName }

// Sentinels are the three that watch.
func (s *SentinelTrio) Sentinels() []*Server { return slices.Clone(s.sentinels) }

// Master is the node that the sentinels which run agree on; it may be one that is
// down and has no successor yet.
func (s *SentinelTrio) Master() *Server {
	s.t.Helper()
	var master *Server
	s.await("the sentinels agree on a master", func() (err error) {
		master, err = s.agreed()
		return err
	})
	return master
}

// agreed is the master that all running sentinels name.
func (s *SentinelTrio) agreed() (*Server, error) {
	var master *Server
	for _, guard := range alive(s.sentinels) {
		words, err := guard.command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinelName)
		if err != nil {
			return nil, err
		}
		named := at(s.nodes, strings.Join(words, ":"))
		if named == nil || master != nil && named != master {
			return nil, fmt.Errorf("sentinel %s names %s", guard.Addr(), strings.Join(words, ":"))
		}
		master = named
	}
	if master == nil {
		return nil, errors.New("no sentinel runs")
	}
	return master, nil
}

// Replicas are the nodes that run and are not the master.
func (s *SentinelTrio) Replicas() []*Server {
	s.t.Helper()
	master := s.Master()
	return slices.DeleteFunc(alive(s.nodes), func(n *Server) bool { return n == master })
}

// KillMaster ends the master with SIGKILL and returns it. It has no data when it
// comes back; see [SentinelTrio.Rejoin].
func (s *SentinelTrio) KillMaster() *Server {
	s.t.Helper()
	master := s.Master()
	master.Kill()
	return master
}

// PauseMaster stops the master with SIGSTOP and returns it. Resume it, and it
// takes itself for the master until its sentinels have told it otherwise.
func (s *SentinelTrio) PauseMaster() *Server {
	s.t.Helper()
	master := s.Master()
	master.Pause()
	return master
}

// Failover has the sentinels make a replica the master, with the old one alive:
// what it took in and had not passed on is lost. It returns the old master at
// once; see [SentinelTrio.AwaitMaster].
func (s *SentinelTrio) Failover() *Server {
	s.t.Helper()
	master := s.Master()
	s.await("a sentinel begins a failover", func() error {
		// It refuses while another is under way, and without a replica that it heard of of late.
		_, err := s.sentinels[0].command("SENTINEL", "FAILOVER", sentinelName)
		return err
	})
	return master
}

// AwaitMaster waits until all sentinels name another master than this one, and
// it takes itself for one, and returns it.
func (s *SentinelTrio) AwaitMaster(other *Server) *Server {
	s.t.Helper()
	var master *Server
	s.await("another master", func() (err error) {
		if master, err = s.agreed(); err != nil {
			return err
		}
		if master == other {
			return fmt.Errorf("it is still %s", master.Addr())
		}
		return master.is("master")
	})
	return master
}

// Rejoin starts a node that was killed or stopped as a replica of the present
// master, or waits for one that was resumed to become one. It returns when the
// node has all the master's data.
func (s *SentinelTrio) Rejoin(node *Server) {
	s.t.Helper()
	if !node.in.running() {
		node.in.follow(s.Master().Addr())
		s.start(node)
	}
	s.await(node.Addr()+" follows the master", func() error { return node.is("slave connected") })
}
