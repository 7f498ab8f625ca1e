package zqtest

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Link is a TCP connection's way from one place to another that can be made long,
// stopped or broken. It knows nothing of what passes, so that it serves for the
// stream from a master to its replica, which a [FaultProxy] does not understand.
// All methods are safe for concurrent use and take effect on open connections too.
type Link struct {
	backend  string
	listener net.Listener
	wg       sync.WaitGroup
	over     chan struct{} // closed at the end

	mu    sync.Mutex
	delay time.Duration
	held  chan struct{} // closed when bytes pass; nil if they do
	cut   bool
	conns map[net.Conn]bool
}

// NewLink starts a link on a free loopback port that leads to addr and closes with
// the test.
func NewLink(t testing.TB, addr string) *Link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("zqtest: link: %v", err)
	}
	l := &Link{backend: addr, listener: listener, over: make(chan struct{}), conns: map[net.Conn]bool{}}
	l.wg.Go(l.accept) // ends when the listener closes
	t.Cleanup(l.close)
	return l
}

// Addr is the host:port to connect to.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Delay makes the way longer: each byte arrives so much later, in both directions.
// Bytes keep coming as fast as before; none are lost. 0 is the end of it.
func (l *Link) Delay(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = d
}

// Hold stops all bytes, with the connections open, as when a cable is pulled out:
// neither end is told. Heal lets them go on.
func (l *Link) Hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = make(chan struct{})
	}
}

// Cut breaks all connections off, and every new one right after it is accepted, until
// Heal. What is on its way is lost.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for conn := range l.conns {
		reset(conn.(*net.TCPConn))
	}
}

// Heal ends a Cut, a Hold and a Delay.
func (l *Link) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut, l.delay = false, 0
	if l.held != nil {
		close(l.held)
		l.held = nil
	}
}

func (l *Link) close() {
	_ = l.listener.Close()
	close(l.over)
	l.Cut()
	l.wg.Wait()
}

func (l *Link) accept() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		l.wg.Go(func() { l.serve(conn) }) // ends with the connection
	}
}

func (l *Link) serve(client net.Conn) {
	defer client.Close()
	server, err := net.DialTimeout("tcp", l.backend, patience)
	if err != nil {
		return
	}
	defer server.Close()
	if !l.admit(client, server) {
		reset(client.(*net.TCPConn))
		return
	}
	var ways sync.WaitGroup
	ways.Go(func() { l.carry(client, server) }) // either ends with the connection it reads
	ways.Go(func() { l.carry(server, client) })
	ways.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, client)
	delete(l.conns, server)
}

func (l *Link) admit(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		l.conns[c] = true
	}
	return !l.cut
}

// parcel is what was read at one time, and when.
type parcel struct {
	bytes []byte
	read  time.Time
}

// linkRoom is how many parcels may be on their way in one direction: with 32 KiB each
// enough for a fast sender and a long way.
const linkRoom = 4096

// carry moves bytes in one direction until either end is gone.
func (l *Link) carry(from, to net.Conn) {
	parcels := make(chan parcel, linkRoom)
	l.wg.Go(func() { // ends with from, or with the link
		defer close(parcels)
		for {
			buffer := make([]byte, 32<<10)
			n, err := from.Read(buffer)
			if n > 0 {
				select {
				case parcels <- parcel{buffer[:n], time.Now()}:
				case <-l.over:
					return
				}
			}
			if err != nil {
				return
			}
		}
	})
	defer to.Close()
	for p := range parcels {
		if !l.wait(p.read) {
			_ = from.Close()
			continue // drained, so that the reader can end
		}
		if _, err := to.Write(p.bytes); err != nil {
			_ = from.Close()
		}
	}
}

// wait waits until what was read then arrives; false when the link is over.
func (l *Link) wait(read time.Time) bool {
	for {
		l.mu.Lock()
		held, due := l.held, read.Add(l.delay)
		l.mu.Unlock()
		if held != nil {
			select {
			case <-held:
				continue
			case <-l.over:
				return false
			}
		}
		left := time.Until(due)
		if left <= 0 {
			return true
		}
		timer := time.NewTimer(min(left, 50*time.Millisecond)) // the way may become shorter
		select {
		case <-timer.C:
		case <-l.over:
			timer.Stop()
			return false
		}
	}
}
