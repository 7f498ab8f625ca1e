package zqtest

import (
	"errors"
	"fmt"
	"testing"
)

// ReplicaServer is a server that follows another by way of a [Link]. Slow the link
// down, and the replica lags behind; hold it and promote the replica, and the brain
// is split.
type ReplicaServer struct {
	*Server
	Link *Link

	master *Server
	fleet  fleet
}

// Replica starts a replica of a server and returns when it has all of its data.
func Replica(t testing.TB, master *Server, opts ...ServerOption) *ReplicaServer {
	t.Helper()
	r := &ReplicaServer{Link: NewLink(t, master.Addr()), master: master, fleet: fleet{t: t}}
	t.Cleanup(func() { r.fleet.end() })
	opts = append(replicating(), opts...)
	if master.in.password != "" {
		opts = append(opts, WithConfig("masterauth", master.in.password), WithConfig("requirepass", master.in.password))
	}
	r.Server = r.fleet.add(opts...)
	r.in.follow(r.Link.Addr())
	r.fleet.start(r.Server)
	r.AwaitSync()
	return r
}

// AwaitSync waits until the replica has everything that its master has now.
func (r *ReplicaServer) AwaitSync() {
	r.t.Helper()
	r.fleet.await("the replica has caught up", func() error {
		if err := r.is("slave connected"); err != nil {
			return err
		}
		want, err := r.master.offset()
		if err != nil {
			return err
		}
		got, err := r.offset()
		if err == nil && got < want {
			err = fmt.Errorf("it is at %d of %d", got, want)
		}
		return err
	})
}

// Lag is how many bytes of its master's stream the replica does not have yet.
func (r *ReplicaServer) Lag() int64 {
	r.t.Helper()
	want, err := r.master.offset()
	got, err2 := r.offset()
	if err := errors.Join(err, err2); err != nil {
		r.t.Fatalf("zqtest: lag: %v", err)
	}
	return max(0, want-got)
}

// Promote makes the replica a master. Its old master is not told.
func (r *ReplicaServer) Promote() {
	r.t.Helper()
	r.in.follow("")
	if _, err := r.command("REPLICAOF", "NO", "ONE"); err != nil {
		r.t.Fatalf("zqtest: promote: %v", err)
	}
}

// Follow makes a server a replica of another, whose data it takes over and loses its
// own; with nil it becomes a master. It returns when that is so.
func (s *Server) Follow(master *Server) {
	s.t.Helper()
	s.own("Follow")
	f := fleet{t: s.t}
	words, want := []string{"REPLICAOF", "NO", "ONE"}, "master"
	if master == nil {
		s.in.follow("")
	} else {
		host, port := hostPort(master.Addr())
		words, want = []string{"REPLICAOF", host, port}, "slave connected"
		s.in.follow(master.Addr())
	}
	if _, err := s.command(words...); err != nil {
		s.t.Fatalf("zqtest: follow: %v", err)
	}
	f.await(s.Addr()+" is "+want, func() error { return s.is(want) })
}
