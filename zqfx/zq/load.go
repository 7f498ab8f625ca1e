package zq

import (
	"sync/atomic"
	"time"
)

// ahead is how much work a process may hoard: less, and fast handlers wait for Redis; more, and an idle
// process cannot run what a slow one sits on.
const ahead = 100 * time.Millisecond

// load measures what this process has in hand and how fast it works it off.
type load struct {
	units, messages atomic.Int64 // waiting for a slot, or behind their key's head
	busy            atomic.Int64 // slots at work, deaf ones included
	mean            atomic.Int64 // of a handler's run, in nanoseconds; 0 unknown
	body            atomic.Int64 // mean bytes of an envelope
}

// ran notes one run of a handler. Lost updates between slots do no harm.
func (l *load) ran(d time.Duration) {
	l.mean.Store(blend(l.mean.Load(), max(1, int64(d))))
}

func (l *load) saw(bytes int) {
	l.body.Store(blend(l.body.Load(), max(1, int64(bytes))))
}

// blend moves an average by an eighth of the way; the first value starts it.
func blend(mean, v int64) int64 {
	if mean == 0 {
		return v
	}
	return max(1, mean+(v-mean)/8)
}

// horizon is how many messages slots work off in the time of ahead.
func (l *load) horizon(slots int) int {
	mean := l.mean.Load()
	if mean == 0 {
		return 0
	}
	return int(min(int64(ahead)/mean*int64(slots), 1<<20))
}

// order is how much to claim.
type order struct{ entries, messages, perKey int }

// want says what to claim now; nothing when entries is 0.
func (l *load) want(cfg *ConsumerConfig) order {
	most := max(0, min(cfg.ClaimAhead, l.horizon(cfg.Concurrency)))
	waiting := int(l.messages.Load())
	free := cfg.Concurrency - int(l.busy.Load()) - int(l.units.Load())
	if int(l.busy.Load()) >= cfg.Concurrency && most == 0 {
		return order{}
	}
	var entries, messages int
	switch {
	case free > 0:
		entries = max(free, most-waiting)
		messages = entries
	case waiting <= most/2:
		entries = most - waiting
		messages = entries
	}
	entries = min(entries, stepMessages)
	perKey := max(1, min(cfg.KeyPrefetch, l.horizon(1)))
	if body := int(l.body.Load()); body > 0 {
		messages = min(messages, max(1, stepBytes/body))
	}
	messages = max(min(messages, stepMessages), min(entries, 1))
	return order{entries: min(entries, messages), messages: messages, perKey: perKey}
}
