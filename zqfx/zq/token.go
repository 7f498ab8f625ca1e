package zq

import (
	"encoding/hex"
	"errors"
	"strconv"
	"sync"

	"github.com/google/uuid"
)

// token names one call to the server, "session:number". A session makes one call after the other, so the
// server keeps the outcome of its last call only: asked again it gives that, and a call that arrives after a
// later one was answered is refused. So what is kept does not grow with the calls, and a command that was
// stuck in some buffer cannot come back to life.
type token struct {
	session string
	number  int64
}

func (t *token) String() string { return t.session + ":" + strconv.FormatInt(t.number, 10) }

// tokens lends sessions to concurrent calls. The zero value is ready.
type tokens struct {
	mu   sync.Mutex
	free []*token
}

// take gives a token for a new call.
func (p *tokens) take() *token {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		t := p.free[n-1]
		p.free = p.free[:n-1]
		t.number++
		return t
	}
	id := uuid.New()
	return &token{session: hex.EncodeToString(id[:]), number: 1}
}

// give returns a session after its call. One whose call may still be on its way is not used again.
func (p *tokens) give(t *token, err error) {
	if errors.Is(err, ErrOutcomeUnknown) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, t)
}
