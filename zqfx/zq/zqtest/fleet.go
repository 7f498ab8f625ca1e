package zqtest

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fleet is several servers of one test that start together and, when it ends,
// are killed together.
type fleet struct {
	t       testing.TB
	servers []*Server
}

// replicating lets a replica follow at once and notice a dead master soon. A
// server that is told to end does not wait for a replica that stands still.
func replicating() []ServerOption {
	return []ServerOption{
		WithConfig("repl-diskless-sync", "yes"), WithConfig("repl-diskless-sync-delay", "0"),
		WithConfig("repl-ping-replica-period", "1"), WithConfig("repl-timeout", "10"), WithConfig("shutdown-timeout", "0"),
	}
}

// add makes a server that does not run yet.
func (f *fleet) add(opts ...ServerOption) *Server {
	f.t.Helper()
	in, err := newInstance(f.t.TempDir(), opts)
	if err != nil {
		f.t.Fatal(err)
	}
	s := &Server{t: f.t, in: in}
	f.servers = append(f.servers, s)
	return s
}

// start brings up the given servers at one time, and none that runs.
func (f *fleet) start(servers ...*Server) {
	f.t.Helper()
	if err := together(servers, (*instance).start); err != nil {
		f.t.Fatal(err)
	}
}

// end kills what is left; to be deferred by Cleanup.
func (f *fleet) end() {
	if err := together(f.servers, (*instance).killDown); err != nil {
		f.t.Errorf("zqtest: %v", err)
	}
	if !f.t.Failed() {
		return
	}
	for _, s := range f.servers {
		f.t.Logf("server %s%s", s.Addr(), s.in.logTail())
	}
}

func together(servers []*Server, do func(*instance) error) error {
	faults := make([]error, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { faults[i] = do(s.in) })
	}
	wg.Wait()
	return errors.Join(faults...)
}

// alive are those of the servers that have a process, paused or not.
func alive(servers []*Server) []*Server {
	return slices.DeleteFunc(slices.Clone(servers), func(s *Server) bool { return !s.in.running() })
}

// at is the server that listens there; nil if it is none of these.
func at(servers []*Server, addr string) *Server {
	for _, s := range servers {
		if s.Addr() == addr {
			return s
		}
	}
	return nil
}

// await waits for a condition on the servers, and tells of what it lacked in
// the end.
func (f *fleet) await(what string, cond func() error) {
	f.t.Helper()
	var err error
	if !slowPoll(patience, func() bool { err = cond(); return err == nil }) {
		f.t.Fatalf("zqtest: not within %v: %s: %v", patience, what, err)
	}
}

// slowPoll is poll for conditions that cost questions to several servers.
func slowPoll(limit time.Duration, cond func() bool) bool {
	next := time.Time{}
	return poll(limit, func() bool {
		if time.Now().Before(next) {
			return false
		}
		ok := cond()
		next = time.Now().Add(10 * pollEvery)
		return ok
	})
}

// command asks the server one thing, and waits for a second at most.
func (s *Server) command(words ...string) (reply []string, err error) {
	err = s.in.talk(probeLimit, func(a *asker) { reply = a.do(words...) })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Addr(), err)
	}
	return reply, nil
}

// is wants the server to have a role.
func (s *Server) is(want string) error {
	role, err := s.role()
	if err == nil && role != want {
		err = fmt.Errorf("%s is %q, not %q", s.Addr(), role, want)
	}
	return err
}

// role is what the server takes itself for, and for a replica whether it
// follows its master: "master", "slave connected" and the like.
func (s *Server) role() (string, error) {
	words, err := s.command("ROLE")
	switch {
	case err != nil:
		return "", err
	case len(words) > 3 && words[0] == "slave":
		return "slave " + words[3], nil
	case len(words) == 0:
		return "", fmt.Errorf("%s: no ROLE", s.Addr())
	}
	return words[0], nil
}

// pairs reads a flat list of names and values.
func pairs(words []string) map[string]string {
	out := make(map[string]string, len(words)/2)
	for i := 0; i+1 < len(words); i += 2 {
		out[words[i]] = words[i+1]
	}
	return out
}

// hostPort splits the address of a server of this package, which has both.
func hostPort(addr string) (host, port string) {
	host, port, _ = net.SplitHostPort(addr)
	return host, port
}

// info reads one line of a section of INFO; "" if it has none of that name.
func (s *Server) info(section, name string) (string, error) {
	words, err := s.command("INFO", section)
	if err != nil || len(words) == 0 {
		return "", err
	}
	for line := range strings.Lines(words[0]) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return value, nil
		}
	}
	return "", nil
}

// offset is how far the server has come in the replication stream.
func (s *Server) offset() (int64, error) {
	text, err := s.info("replication", "master_repl_offset")
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}
