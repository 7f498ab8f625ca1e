package ratelimit

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits of a LocalLimiter.
const (
	DefaultMaxNames = 10_000
	MaxMaxNames     = 1_000_000
	maxSlots        = 200_000 // of all names together
	forgetMost      = 4       // names that nobody asks for, at each new one
)

// LocalLimiter is a Limiter in this process's memory. It is safe for concurrent use. It gives away 200,000 slots of all
// names together at most; who finds none is told to come back as from behind a full Line.
type LocalLimiter struct {
	cfg localConfig

	mu    sync.Mutex
	names map[string]*list.Element // of *bucket
	used  *list.List               // the same, the last asked for in front
	slots int
}

type localConfig struct {
	pace
	maxNames int
	now      func() time.Time
}

// LocalOption configures a LocalLimiter.
type LocalOption interface{ applyLocal(*localConfig) }

type localOption func(*localConfig)

func (f localOption) applyLocal(c *localConfig) { f(c) }

// MaxNames bounds how many names are remembered: 1 to MaxMaxNames, DefaultMaxNames unless set. With more that are in
// use, the one that was not asked for the longest is forgotten, and begins anew with a full burst.
func MaxNames(n int) LocalOption { return localOption(func(c *localConfig) { c.maxNames = n }) }

// Clock sets what says what time it is, time.Now unless set. It must be safe for concurrent use.
func Clock(now func() time.Time) LocalOption {
	return localOption(func(c *localConfig) { c.now = now })
}

// Local makes a limiter for this process alone: limit starts a second, from MinLimit to MaxLimit, and up to burst at
// once after a pause, 1 to MaxBurst. Each name has the whole limit. It lists all that is wrong with its arguments, as
// *zq.InvalidError.
func Local(limit float64, burst int, opts ...LocalOption) (*LocalLimiter, error) {
	c := localConfig{pace: newPace(limit, burst), maxNames: DefaultMaxNames, now: time.Now}
	for _, o := range opts {
		if o != nil {
			o.applyLocal(&c)
		}
	}
	fault := c.faults("Local")
	if c.maxNames < 1 || c.maxNames > MaxMaxNames {
		fault = errors.Join(fault, invalid("ratelimit.MaxNames", c.maxNames, fmt.Sprintf("1 to %d", MaxMaxNames)))
	}
	if c.now == nil {
		fault = errors.Join(fault, invalid("ratelimit.Clock", "nil", "a function"))
	}
	if fault != nil {
		return nil, fault
	}
	return &LocalLimiter{cfg: c, names: map[string]*list.Element{}, used: list.New()}, nil
}

// Reserve is Limiter's. It never fails and never waits.
func (l *LocalLimiter) Reserve(_ context.Context, name, id string) (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.cfg.now()
	b := l.bucket(name, now)
	l.slots -= b.forget(now.Add(-l.cfg.kept()))
	if due, ok := b.due[id]; ok {
		wait := due.Sub(now)
		if wait > 0 && wait <= l.cfg.horizon() {
			return wait, nil // it is early
		}
		b.release(id)
		l.slots--
		if wait <= 0 {
			return 0, nil
		}
		// The clock went back: this one pays again.
	}
	r := b.rate.ReserveN(now, 1)
	wait := r.DelayFrom(now).Round(time.Microsecond) // sums of fractions end a little beside the whole
	switch {
	case wait <= 0:
		return 0, nil
	case wait <= l.cfg.horizon() && l.slots < maxSlots:
		b.book(id, now.Add(wait))
		l.slots++
		return wait, nil
	}
	r.CancelAt(now)
	return spread(b.behind(now.Add(wait), now, &l.cfg.pace), l.cfg.longest(), id), nil
}

// Names is how many names are remembered.
func (l *LocalLimiter) Names() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.names)
}

// bucket is the one of this name. A new one pushes some out that nobody has asked for, until they are full again.
func (l *LocalLimiter) bucket(name string, now time.Time) *bucket {
	if e := l.names[name]; e != nil {
		l.used.MoveToFront(e)
		return e.Value.(*bucket) // nothing else is in the list
	}
	for range forgetMost {
		e := l.used.Back()
		if e == nil {
			break
		}
		old := e.Value.(*bucket) // nothing else is in the list
		if len(l.names) < l.cfg.maxNames && !old.idle(now.Add(-l.cfg.kept()), now) {
			break
		}
		l.used.Remove(e)
		delete(l.names, old.name)
		l.slots -= len(old.due)
	}
	b := &bucket{name: name, rate: rate.NewLimiter(rate.Every(l.cfg.interval()), l.cfg.burst), due: map[string]time.Time{}}
	l.names[name] = l.used.PushFront(b)
	return b
}
