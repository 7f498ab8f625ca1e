package zqtest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// sharedServer is the one server of a test process. House style bans package
// state; here *testing.M gives no place to keep it, and Shared has only its t.
var sharedServer packageServer

// Main runs the tests of a package and returns the exit code:
//
//	func TestMain(m *testing.M) { os.Exit(zqtest.Main(m)) }
//
// It serves [Shared], runs the function of a [Child] instead of the tests when
// this process is one, and fails the package if a goroutine outlives its tests.
func Main(m *testing.M) int {
	RunChild()
	sharedServer.open()
	code := m.Run()
	err := sharedServer.close()
	if err == nil && code == 0 {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "zqtest:", err)
		return max(code, 1)
	}
	return code
}

// Shared gives the redis-server that all tests of this package share, started
// by the first that asks. Take a name from [Queue] to keep tests apart. Its
// clients close with the test; Stop, Kill, Restart, Pause and Resume fail the
// test. TestMain must call [Main].
func Shared(t testing.TB) *Server {
	t.Helper()
	in, err := sharedServer.get()
	if err != nil {
		t.Fatal(err)
	}
	return &Server{t: t, in: in, shared: true}
}

// packageServer starts a server when first asked, between open and close.
type packageServer struct {
	mu     sync.Mutex
	opened bool
	in     *instance
	err    error
}

func (p *packageServer) open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opened = true
}

func (p *packageServer) get() (*instance, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.opened {
		return nil, errors.New("zqtest: Shared needs a TestMain that calls zqtest.Main")
	}
	if p.in == nil && p.err == nil {
		p.err = p.start()
	}
	return p.in, p.err
}

func (p *packageServer) start() error {
	dir, err := os.MkdirTemp("", "zqtest-")
	if err != nil {
		return fmt.Errorf("zqtest: shared server: %w", err)
	}
	in, err := newInstance(dir, nil)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	p.in = in // even if it fails: close removes what is left
	return in.start()
}

func (p *packageServer) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opened = false
	if p.in == nil {
		return nil
	}
	return errors.Join(p.in.shutDown(), os.RemoveAll(p.in.dir))
}
