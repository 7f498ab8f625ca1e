package zqtest

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

// session is one client's connection through the proxy: two streams, and the
// commands on their way between them.
type session struct {
	proxy          *FaultProxy
	client, server *net.TCPConn

	commands, replies atomic.Int64
	open              atomic.Bool

	quitOnce sync.Once
	quit     chan struct{} // closed when the client is to hear no more

	mu      sync.Mutex
	flights []*flight // forwarded, not yet answered, in order

	resp3, unordered bool // used by upstream alone
}

func newSession(p *FaultProxy, client, server *net.TCPConn) *session {
	s := &session{proxy: p, client: client, server: server, quit: make(chan struct{})}
	s.open.Store(true)
	return s
}

// run forwards until either end is gone, and leaves nothing behind.
func (s *session) run() {
	var up sync.WaitGroup
	up.Go(s.upstream) // ends when the client's connection closes
	s.downstream()
	s.hangUp()
	_ = s.client.Close()
	up.Wait()
	_ = s.server.Close()
	s.open.Store(false)
}

func (s *session) traffic() Traffic {
	return Traffic{Commands: int(s.commands.Load()), Replies: int(s.replies.Load()), Open: s.open.Load()}
}

// upstream forwards commands. When the client is gone the server is told, and
// may still answer what it has.
func (s *session) upstream() {
	defer func() { _ = s.server.CloseWrite() }()
	w := newWire(s.client)
	for {
		raw, words, err := w.command()
		if err != nil {
			s.ended(err)
			return
		}
		if s.quitting() {
			continue // read on, so that closing does not reset the client
		}
		if !s.forward(raw, words) {
			s.hangUp()
		}
	}
}

// forward sends one command on and reports false if it was lost.
func (s *session) forward(raw []byte, words []string) bool {
	if len(words) > 0 { // else a blank line, which has no reply
		s.commands.Add(1)
		f := s.proxy.plan(words)
		if !s.before(f) {
			return false
		}
		if s.answered(words) {
			s.push(f)
		}
	}
	_, err := s.server.Write(raw)
	return err == nil
}

// downstream forwards replies until the server closes.
func (s *session) downstream() {
	w := newWire(s.server)
	for {
		raw, err := w.reply()
		if err != nil {
			s.ended(err)
			return
		}
		if raw[0] != '>' && !s.deliver(s.pop()) {
			s.hangUp()
			continue
		}
		if !s.quitting() {
			_, _ = s.client.Write(raw) // upstream notices a client that is gone
		}
	}
}

// hangUp ends the stream to the client: it reads EOF and no more replies.
func (s *session) hangUp() {
	s.quitOnce.Do(func() {
		close(s.quit)
		_ = s.client.CloseWrite()
	})
}

func (s *session) quitting() bool {
	select {
	case <-s.quit:
		return true
	default:
		return false
	}
}

// abort breaks both connections off.
func (s *session) abort() {
	s.quitOnce.Do(func() { close(s.quit) })
	reset(s.client)
	reset(s.server)
}

// ended looks at why a stream ended: bytes that are no RESP are a fault of
// the test, and break the session off.
func (s *session) ended(err error) {
	if errors.Is(err, errProtocol) {
		s.proxy.breach(err)
		s.abort()
	}
}

// reset closes a connection so that the other end sees it broken, not ended.
func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}
