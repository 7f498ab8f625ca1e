package idempotency

import (
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// How long a message is put off while the store is out of reach, and how long the store must answer again before
// that counts as a change.
const (
	outageLeast = time.Second
	outageMost  = 30 * time.Second
	outageCalm  = time.Second
)

// outage knows since when the store has been out of reach, so that each message waits about as long again, and
// tells of it once at each change of state. The local clock paces; it decides nothing about a key.
type outage struct {
	now    func() time.Time
	tell   func(error) // nil when the store answers again
	logger *slog.Logger

	mu          sync.Mutex
	down        bool
	since, last time.Time
}

// failed notes a failure and says how long to wait: between half of as long as it has lasted and all of it, so that
// messages do not come back in step, within 1 to 30 seconds.
func (o *outage) failed(err error) time.Duration {
	o.mu.Lock()
	now, first := o.now(), !o.down
	if first {
		o.down, o.since = true, now
	}
	o.last = now
	lasted := now.Sub(o.since)
	o.mu.Unlock()
	if first {
		o.logger.Warn("idempotency: the store is out of reach; messages are postponed", "error", err)
		o.tell(err)
	}
	full := min(max(lasted, 2*outageLeast), outageMost)
	return full/2 + rand.N(full/2) //nolint:gosec // jitter, not a secret
}

// answered notes a success.
func (o *outage) answered() {
	o.mu.Lock()
	back := o.down && o.now().Sub(o.last) >= outageCalm
	if back {
		o.down = false
	}
	o.mu.Unlock()
	if back {
		o.logger.Info("idempotency: the store answers again")
		o.tell(nil)
	}
}
