package sequence

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Reasons of dead letters.
const (
	ReasonNumber = "number" // no number, none that is valid, or no ordering key
	ReasonGap    = "gap"    // its predecessor did not come in time, or it is too far ahead
	ReasonLate   = "late"   // its number was skipped
)

// Outcome is what the middleware does with a message. There are few, so it can be an attribute of a metric.
type Outcome string

// Outcomes. A message whose turn it is just runs, and is not reported.
const (
	Waits       Outcome = "waits"       // its predecessor is not confirmed: it steps aside, uncharged
	Overdue     Outcome = "overdue"     // the gap has outlasted its limit; what is queued behind gets a last chance
	GapDied     Outcome = "gap"         // that brought nothing: a dead letter
	GapSkipped  Outcome = "skipped"     // that brought nothing: it runs, and the gap counts as skipped if it ends well
	TooFar      Outcome = "too_far"     // it is farther ahead than MaxAhead: a dead letter
	Duplicate   Outcome = "duplicate"   // its number is confirmed: acked without running
	Late        Outcome = "late"        // its number was skipped: a dead letter
	Unnumbered  Outcome = "unnumbered"  // it has no number that counts: a dead letter, or it passes
	Unavailable Outcome = "unavailable" // Redis is out of reach: postponed, uncharged
)

// Report tells of one decision.
type Report struct {
	Outcome Outcome
	// Key is the ordering key, Number the message's number, 0 if it has none.
	Key    string
	Number int64
	// Confirmed is the last confirmed number of the key: the first number less one if none is.
	Confirmed int64
	// From and To are the missing numbers before the message, as far as is known: numbers that wait themselves
	// are not told apart.
	From, To int64
	// Since is when the first message with this number began to wait; zero if none has.
	Since time.Time
}

func report(o Outcome, d *zq.Delivery, n int64, s *state) Report {
	r := Report{Outcome: o, Key: d.Key, Number: n, Confirmed: s.confirmed}
	if n > s.confirmed+1 {
		r.From, r.To = s.confirmed+1, n-1
	}
	if s.own != nil {
		r.Since = time.UnixMicro(s.own.since)
	}
	return r
}

// tell reports a decision, and survives the application's panics.
func (g *gate) tell(ctx context.Context, d *zq.Delivery, r Report) {
	if r.Outcome == Overdue {
		g.cfg.logger.Warn("sequence: numbers are missing", "queue", d.Queue, "id", d.ID, "from", r.From, "to", r.To)
	}
	for _, f := range g.cfg.outcomes {
		g.call(ctx, d, r, f)
	}
}

func (g *gate) call(ctx context.Context, d *zq.Delivery, r Report, f func(context.Context, *zq.Delivery, Report)) {
	defer contain(&g.panicked, g.cfg)
	f(ctx, d, r)
}

// contain is deferred; it ends a panic, and logs the first.
func contain(said *atomic.Bool, cfg *config) {
	if v := recover(); v != nil && !said.Swap(true) {
		cfg.logger.Error("sequence: a hook panicked; said once", "hook", "OnOutcome", "panic", v)
	}
}
