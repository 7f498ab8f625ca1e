package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Limiter says when a message may run. It must be safe for concurrent use.
type Limiter interface {
	// Reserve asks for the message id to run under a name. A wait of 0 means now. Otherwise the message comes back
	// after that, with the same name and id, and should then find that it need not pay again. It is not asked again
	// once it was told 0, so that this must use up what was reserved.
	Reserve(ctx context.Context, name, id string) (wait time.Duration, err error)
}

// Limits and defaults of limiters. A value outside gives a *zq.InvalidError that names the field, the value and the
// range.
const (
	MinLimit       = 1.0 / (24 * 60 * 60) // a day apart
	MaxLimit       = 100_000.0            // a second
	MaxBurst       = 1_000_000
	DefaultLine    = 10_000
	MaxLine        = 100_000
	DefaultMaxWait = 10 * time.Minute
	MaxMaxWait     = 24 * time.Hour
	maxFill        = 30 * 24 * time.Hour // that a whole burst may take to fill up
	minKept        = time.Second         // that a slot is kept after its time
)

// LimiterOption configures a limiter of either kind.
type LimiterOption interface {
	LocalOption
	SharedOption
}

type limiterOption func(*pace)

func (f limiterOption) applyLocal(c *localConfig)   { f(&c.pace) }
func (f limiterOption) applyShared(c *sharedConfig) { f(&c.pace) }

// Line is how many slots of a name can be given away ahead: 1 to MaxLine, DefaultLine unless set. Each is remembered
// until it is used, in some hundred bytes.
func Line(n int) LimiterOption { return limiterOption(func(p *pace) { p.line = n }) }

// MaxWait bounds how far ahead slots are given away, and how long a message waits without having one, so that it
// finds out about a limit that was raised: 1 s to MaxMaxWait, DefaultMaxWait unless set. The next slot of a name can
// always be had.
func MaxWait(d time.Duration) LimiterOption { return limiterOption(func(p *pace) { p.maxWait = d }) }

// pace is a limit as limiters reckon with it, in whole microseconds.
type pace struct {
	limit   float64
	burst   int
	line    int
	maxWait time.Duration
}

func newPace(limit float64, burst int) pace {
	return pace{limit: limit, burst: burst, line: DefaultLine, maxWait: DefaultMaxWait}
}

func (p *pace) faults(kind string) error {
	var all []error
	add := func(field string, value any, want string) {
		all = append(all, invalid("ratelimit."+kind+field, value, want))
	}
	fits := p.limit >= MinLimit && p.limit <= MaxLimit // false for NaN
	if !fits {
		add(" limit", p.limit, fmt.Sprintf("%.3g to %.0f a second", MinLimit, MaxLimit))
	}
	switch {
	case p.burst < 1 || p.burst > MaxBurst:
		add(" burst", p.burst, fmt.Sprintf("1 to %d", MaxBurst))
	case fits && float64(p.burst)/p.limit > maxFill.Seconds():
		add(" burst", p.burst, fmt.Sprintf("at most what the limit gives in %s", maxFill))
	}
	if p.line < 1 || p.line > MaxLine {
		add(": Line", p.line, fmt.Sprintf("1 to %d", MaxLine))
	}
	if p.maxWait < time.Second || p.maxWait > MaxMaxWait {
		add(": MaxWait", p.maxWait, fmt.Sprintf("%s to %s", time.Second, MaxMaxWait))
	}
	return errors.Join(all...)
}

// interval is the time between two slots, rounded up: no more slots than the limit allows.
func (p *pace) interval() time.Duration {
	return time.Duration(math.Ceil(float64(time.Second/time.Microsecond)/p.limit)) * time.Microsecond
}

// tolerance is how much earlier than its turn a message may come, because of the burst.
func (p *pace) tolerance() time.Duration { return time.Duration(p.burst-1) * p.interval() }

// horizon is how far ahead slots are given away.
func (p *pace) horizon() time.Duration {
	return min(time.Duration(p.line)*p.interval(), max(p.maxWait, p.interval()))
}

// kept is how long after its time a slot can be used.
func (p *pace) kept() time.Duration { return max(minKept, time.Duration(p.burst)*p.interval()) }

// longest is the longest wait of a message without a slot.
func (p *pace) longest() time.Duration { return max(p.maxWait, p.horizon()) }

func invalid(field string, value any, want string) *zq.InvalidError {
	return &zq.InvalidError{Field: field, Value: fmt.Sprint(value), Want: want}
}
