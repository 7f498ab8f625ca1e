package zqtest

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// Match tells whether a command is meant: cmd holds its words as the client
// sent them, cmd[0] the name. A nil Match means every command, the handshake
// (HELLO, CLIENT) included. A proxy calls its matches one at a time, so a Match
// may keep state of its own; it must not call the proxy.
type Match func(cmd []string) bool

// Command matches commands of that name, in any case, that hold all the given
// words somewhere among their arguments: a script's hash, a key, a member.
func Command(name string, words ...string) Match {
	return func(cmd []string) bool {
		if !strings.EqualFold(cmd[0], name) {
			return false
		}
		for _, word := range words {
			if !slices.Contains(cmd[1:], word) {
				return false
			}
		}
		return true
	}
}

type faultKind int

const (
	dropCommand faultKind = iota
	dropReply
	delayCommand
	holdReply
)

// Fault is a disturbance that a [FaultProxy] keeps ready. It is safe for
// concurrent use.
type Fault struct {
	match Match
	kind  faultKind
	delay time.Duration
	limit int // how often it may strike; 0 is without end

	mu       sync.Mutex
	taken    int // commands picked, whether struck yet or not
	struck   int
	done     chan struct{}
	released chan struct{}
}

func newFault(kind faultKind, match Match, limit int) *Fault {
	return &Fault{
		match: match, kind: kind, limit: max(limit, 0),
		done: make(chan struct{}), released: make(chan struct{}),
	}
}

// Done is closed when the fault has struck as often as was asked, or once if
// no number was given. A dropped or held reply counts when the proxy has all
// of it, so the server has acted by then; a delay when it begins.
func (f *Fault) Done() <-chan struct{} { return f.done }

// Struck tells how often the fault has struck so far.
func (f *Fault) Struck() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.struck
}

// Release takes the fault away: it picks no further command, and replies that
// it holds go out, in order. It may be called more than once.
func (f *Fault) Release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.released:
	default:
		close(f.released)
	}
}

// pick reports whether the fault is for this command, and books it if so:
// never more than limit, however many connections race.
func (f *Fault) pick(cmd []string) bool {
	if f.match != nil && !f.match(cmd) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.released:
		return false
	default:
	}
	if f.limit > 0 && f.taken == f.limit {
		return false
	}
	f.taken++
	return true
}

// strike counts that the fault took effect.
func (f *Fault) strike() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.struck++
	if f.struck == max(f.limit, 1) {
		close(f.done)
	}
}
