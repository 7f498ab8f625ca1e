package demo

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errBusy is how a mail server refuses a sender that it does not know yet.
var errBusy = errors.New("the mail server says: 451 try again later")

// mailServer is a slow one that refuses the first mail. It is safe for concurrent use.
type mailServer struct {
	mu    sync.Mutex
	tries int
	took  int
	first chan struct{} // closed when it has taken a mail
}

func newMailServer() *mailServer { return &mailServer{first: make(chan struct{})} }

// delay is how long it thinks about a mail.
const delay = 100 * time.Millisecond

func (m *mailServer) deliver(ctx context.Context, _, _ string) error {
	thought := time.NewTimer(delay)
	defer thought.Stop()
	select {
	case <-thought.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tries++; m.tries == 1 {
		return errBusy
	}
	if m.took++; m.took == 1 {
		close(m.first)
	}
	return nil
}

func (m *mailServer) taken() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.took
}
