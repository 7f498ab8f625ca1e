package ratelimit

import (
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// How often the limiter is asked while it is out of reach, and how long messages are put off then.
const (
	askAgain   = time.Second
	pauseLeast = time.Second
	pauseMost  = 30 * time.Second
)

// outage knows whether the limiter is out of reach, lets one message at a time find out whether it is back, and tells
// of each change once. The local clock paces; it decides nothing about a rate.
type outage struct {
	now    func() time.Time
	tell   func(error) // nil when the limiter answers again
	logger *slog.Logger

	mu          sync.Mutex
	down        bool
	asking      bool // while down: a message is finding out
	since, last time.Time
	passed      int64 // messages since then that went by unasked
	panicked    bool
}

// ask tells whether to ask the limiter. Whoever does, says afterwards how that went.
func (o *outage) ask() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.down {
		return true
	}
	if o.asking || o.now().Sub(o.last) < askAgain {
		return false
	}
	o.asking = true
	return true
}

// failed notes that the limiter did not answer.
func (o *outage) failed(err error, closed bool) {
	o.mu.Lock()
	first := !o.down
	o.last, o.asking = o.now(), false
	if first {
		o.down, o.since, o.passed = true, o.last, 0
	}
	o.mu.Unlock()
	if !first {
		return
	}
	if closed {
		o.logger.Warn("ratelimit: the limiter is out of reach; messages are postponed", "error", err)
	} else {
		o.logger.Warn("ratelimit: the limiter is out of reach; messages run unlimited", "error", err)
	}
	o.hook(err)
}

// unknown notes that the one who asked could not wait for an answer.
func (o *outage) unknown() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asking = false
}

// answered notes an answer. One to a question from before the last failure says nothing.
func (o *outage) answered() {
	o.mu.Lock()
	back := o.down && o.now().Sub(o.last) >= askAgain
	if back {
		o.down, o.asking = false, false
	}
	lasted, passed := o.now().Sub(o.since), o.passed
	o.mu.Unlock()
	if back {
		o.logger.Info("ratelimit: the limiter answers again", "after", lasted, "messages", passed)
		o.hook(nil)
	}
}

// pass counts a message that goes by the limiter, and is how long to put it off if it may not run: between half of as
// long as the outage has lasted and all of it, so that messages do not come back in step, within 1 to 30 seconds.
func (o *outage) pass() time.Duration {
	o.mu.Lock()
	o.passed++
	lasted := o.now().Sub(o.since)
	o.mu.Unlock()
	full := min(max(lasted, 2*pauseLeast), pauseMost)
	return full/2 + rand.N(full/2) //nolint:gosec // jitter, not a secret
}

func (o *outage) hook(err error) {
	if o.tell == nil {
		return
	}
	defer func() {
		v := recover()
		o.mu.Lock()
		first := v != nil && !o.panicked
		o.panicked = o.panicked || first
		o.mu.Unlock()
		if first {
			o.logger.Error("ratelimit: a hook panicked; said once", "hook", "OnLimiter", "panic", v)
		}
	}()
	o.tell(err)
}
