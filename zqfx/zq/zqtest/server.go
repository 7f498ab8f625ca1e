package zqtest

import (
	"net/url"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Server is a real redis-server on a loopback port. A method that fails fails
// the test. It is safe for concurrent use, but call what may fail from the
// goroutine of the test.
type Server struct {
	t      testing.TB
	in     *instance
	shared bool
}

// Redis starts a redis-server for this test alone and returns when it answers.
// It listens on a free port of 127.0.0.1, keeps nothing on disk unless told to,
// and is gone when the test and its cleanups end. Without a redis-server of
// version 7.0 or newer the test fails, and says what to install; it does not
// skip. ZQ_REDIS_SERVER may name the binary.
func Redis(t testing.TB, opts ...ServerOption) *Server {
	t.Helper()
	in, err := newInstance(t.TempDir(), opts)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, in: in}
	t.Cleanup(func() { s.must(in.shutDown()) })
	s.must(in.start())
	return s
}

// Addr is the server's host:port. It stays the same over a Restart.
func (s *Server) Addr() string { return s.in.addr() }

// URL is the server's address as redis.ParseURL reads it.
func (s *Server) URL() string {
	u := url.URL{Scheme: "redis", Host: s.Addr(), Path: "/0"}
	if s.in.tls != nil {
		u.Scheme = "rediss"
	}
	if s.in.password != "" {
		u.User = url.UserPassword("", s.in.password)
	}
	return u.String()
}

// Options are fresh go-redis options that reach the server, defaults otherwise.
func (s *Server) Options() *redis.Options {
	return &redis.Options{Addr: s.Addr(), Password: s.in.password, TLSConfig: s.TLSConfig()}
}

// Client is a new go-redis client of the server, closed when the test ends.
// Each change is applied to its options first.
func (s *Server) Client(changes ...func(*redis.Options)) *redis.Client {
	opts := s.Options()
	for _, change := range changes {
		change(opts)
	}
	rdb := redis.NewClient(opts)
	s.t.Cleanup(func() { _ = rdb.Close() }) // the test may have closed it
	return rdb
}

// Pid is the server's process id; a Restart changes it.
func (s *Server) Pid() int {
	s.t.Helper()
	pid := 0
	s.must(s.in.with(func(p *process) error { pid = p.pid(); return nil }))
	return pid
}

// Dir is the server's working directory. It holds its log,
// redis-server.log, and is removed with the server.
func (s *Server) Dir() string { return s.in.dir }

// Stop shuts the server down in good order and returns when it is gone. A
// stopped server is not an error.
func (s *Server) Stop() {
	s.t.Helper()
	s.own("Stop")
	s.must(s.in.shutDown())
}

// Kill ends the server with SIGKILL and returns when it is gone.
func (s *Server) Kill() {
	s.t.Helper()
	s.own("Kill")
	s.must(s.in.with((*process).kill))
}

// Restart stops the server if it runs and starts it on the same port and
// directory. It returns when the server answers, its data loaded. The data is
// gone unless [WithAppendOnly] or a setting of yours keeps it.
func (s *Server) Restart() {
	s.t.Helper()
	s.own("Restart")
	s.must(s.in.shutDown())
	s.must(s.in.start())
}

// Pause stops the server with SIGSTOP: it keeps its connections and answers
// nothing until Resume. It returns when the server stands still.
func (s *Server) Pause() {
	s.t.Helper()
	s.own("Pause")
	s.must(s.in.with((*process).pause))
}

// Resume lets a paused server go on with what has arrived meanwhile.
func (s *Server) Resume() {
	s.t.Helper()
	s.own("Resume")
	s.must(s.in.with((*process).resume))
}

// own refuses to disturb the server that other tests are using.
func (s *Server) own(what string) {
	s.t.Helper()
	if s.shared {
		s.t.Fatalf("zqtest: %s on the shared server would hit other tests; use zqtest.Redis(t)", what)
	}
}

func (s *Server) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}
