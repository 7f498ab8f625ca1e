package zqtest

import (
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// FaultProxy is a TCP proxy in front of a Redis that loses, delays or holds
// what it is told to, command by command. Replies belong to commands by their
// order, over pipelines and the RESP3 handshake; pushes belong to none, nor does
// anything on a connection that has subscribed in RESP2. All methods are safe for concurrent use and take effect at once, on open
// connections too.
type FaultProxy struct {
	backend  string
	listener net.Listener
	wg       sync.WaitGroup

	matchMu sync.Mutex // one Match at a time; held while user code runs

	mu       sync.Mutex
	faults   []*Fault
	counters []*Counter
	sessions []*session
	cut      bool
	failure  error // the first breach of protocol
}

// Proxy starts a fault proxy on a free loopback port that forwards to the
// Redis at backendAddr and closes with the test. The test fails if what passes
// through is not RESP.
func Proxy(t testing.TB, backendAddr string) *FaultProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("zqtest: proxy: %v", err)
	}
	p := &FaultProxy{backend: backendAddr, listener: listener}
	p.wg.Go(p.accept) // ends when the listener closes
	t.Cleanup(func() {
		if err := p.close(); err != nil {
			t.Errorf("zqtest: proxy: %v", err)
		}
	})
	return p
}

// Addr is the host:port for clients to connect to.
func (p *FaultProxy) Addr() string { return p.listener.Addr().String() }

// DropReply loses the reply of the next n commands that match, or of all if n
// is 0: the command reaches the server, the whole reply is awaited and thrown
// away, and the client's connection is closed, so that it sees EOF after the
// server has acted. Commands behind it in the same pipeline may or may not
// have reached the server, as when a real network breaks.
func (p *FaultProxy) DropReply(match Match, n int) *Fault {
	return p.add(newFault(dropReply, match, n))
}

// DropCommand loses the next n commands that match, or all if n is 0: the
// client's connection is closed and the server never sees the command, nor
// those behind it. Replies to those ahead of it in the same pipeline may be
// lost as well.
func (p *FaultProxy) DropCommand(match Match, n int) *Fault {
	return p.add(newFault(dropCommand, match, n))
}

// Delay makes every matching command wait for d before it goes to the server;
// what follows on that connection waits behind it.
func (p *FaultProxy) Delay(match Match, d time.Duration) *Fault {
	f := newFault(delayCommand, match, 0)
	f.delay = d
	return p.add(f)
}

// HoldReply keeps the replies of all matching commands, and what follows on
// their connections, until the fault is released. The server has acted when
// Done is closed.
func (p *FaultProxy) HoldReply(match Match) *Fault {
	return p.add(newFault(holdReply, match, 0))
}

// Cut resets all connections, and every new one right after it is accepted,
// until Heal. The port stays taken, so a client is reset rather than refused.
func (p *FaultProxy) Cut() {
	p.mu.Lock()
	p.cut = true
	sessions := slices.Clone(p.sessions)
	p.mu.Unlock()
	for _, s := range sessions {
		s.abort()
	}
}

// Heal lets clients connect again after a Cut.
func (p *FaultProxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
}

func (p *FaultProxy) add(f *Fault) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(slices.Clone(p.faults), f)
	return f
}

func (p *FaultProxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.wg.Go(func() { p.serve(conn.(*net.TCPConn)) }) // ends with the session
	}
}

// serve runs one client's connection to its end.
func (p *FaultProxy) serve(client *net.TCPConn) {
	server, err := net.DialTimeout("tcp", p.backend, patience)
	if err != nil {
		reset(client)
		return
	}
	s := newSession(p, client, server.(*net.TCPConn))
	p.mu.Lock()
	cut := p.cut
	if !cut {
		p.sessions = append(p.sessions, s)
	}
	p.mu.Unlock()
	if cut {
		s.abort()
		return
	}
	s.run()
}

// plan books a command with every counter and fault that it concerns.
func (p *FaultProxy) plan(cmd []string) *flight {
	p.mu.Lock()
	faults, counters := p.faults, p.counters // replaced on change, never written
	p.mu.Unlock()
	p.matchMu.Lock()
	defer p.matchMu.Unlock()
	f := &flight{}
	for _, c := range counters {
		if c.match == nil || c.match(cmd) {
			c.commands.Add(1)
			f.counters = append(f.counters, c)
		}
	}
	for _, fault := range faults {
		if fault.pick(cmd) {
			f.faults = append(f.faults, fault)
		}
	}
	return f
}

// breach keeps the first breach of protocol for the end of the test.
func (p *FaultProxy) breach(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure == nil {
		p.failure = err
	}
}

func (p *FaultProxy) close() error {
	_ = p.listener.Close()
	p.Cut()
	p.wg.Wait()
	return p.failure
}
