package zq

import (
	"context"
	"sync"
	"time"
)

// slot is one place for a running handler. The sweeper may take the message of one that is deaf to its
// context; whoever is first, it or the handler's return, settles the message.
type slot struct {
	mu      sync.Mutex
	d       *Delivery // nil when nothing runs
	u       *unit
	rest    int // messages of the unit behind this one
	cancel  context.CancelCauseFunc
	started time.Time
	endedAt time.Time       // when its context was ended for running too long
	taken   bool            // its message was taken from it
	ctx     context.Context //nolint:containedctx // what Delivery.Within names; kept until the next run begins
}

func (sl *slot) begin(d *Delivery, u *unit, rest int, cancel context.CancelCauseFunc, now time.Time) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.d, sl.u, sl.rest, sl.cancel, sl.started = d, u, rest, cancel, now
	sl.endedAt, sl.taken, sl.ctx = time.Time{}, false, nil
	d.at = sl
}

// within keeps the context for observers, if it is this message that runs.
func (sl *slot) within(ctx context.Context, d *Delivery) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.d != nil && sl.d.member == d.member {
		sl.ctx = ctx
	}
}

func (sl *slot) context() context.Context {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.ctx == nil {
		return context.Background()
	}
	return context.WithoutCancel(sl.ctx)
}

// finish ends a run; false if its message was taken from it meanwhile.
func (sl *slot) finish() bool {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	mine := !sl.taken
	sl.d, sl.u, sl.cancel = nil, nil, nil
	return mine
}

// abandon takes the message of a run that is still going on.
func (sl *slot) abandon() (taken bool) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.d == nil || sl.taken {
		return sl.taken && sl.d != nil
	}
	sl.taken = true
	return true
}

// overrun is what the sweeper has to do about a slot.
type overrun struct {
	d     *Delivery
	u     *unit
	rest  int
	began time.Time
}

// sweep ends the context of a run that is too long, and takes its message when it does not return either.
func (sl *slot) sweep(now time.Time, maxRun, grace time.Duration) *overrun {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.d == nil || sl.taken || now.Sub(sl.started) < maxRun {
		return nil
	}
	if sl.endedAt.IsZero() {
		sl.endedAt = now
		sl.cancel(ErrTimeout)
		return nil
	}
	if now.Sub(sl.endedAt) < grace {
		return nil
	}
	sl.taken = true
	return &overrun{d: sl.d, u: sl.u, rest: sl.rest, began: sl.started}
}

// sweep watches how long handlers run. A deaf one keeps its slot until it returns, so that no more than
// Concurrency ever run, but it loses its message, which counts as a failed attempt.
func (s *session) sweep() {
	if s.cfg.MaxRun == Unlimited {
		return
	}
	every := min(max(min(s.cfg.MaxRun, s.cfg.Grace)/8, time.Millisecond), time.Second)
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-s.calm:
			return
		case now := <-t.C:
			for _, sl := range s.slots {
				if o := sl.sweep(now, s.cfg.MaxRun, s.cfg.Grace); o != nil {
					s.count.taken.Add(1)
					s.log.deaf(o.d.ID)
					dec := judge(o.d, ErrTimeout, nil, s.rules)
					s.observeDecision(o.d, dec, ErrTimeout, now.Sub(o.began))
					if s.record(o.u, o.d, dec, o.rest) && o.rest > 0 {
						s.release(o.u, len(o.u.msgs)-o.rest) // its slot cannot run them, and they need not wait
					}
				}
			}
		}
	}
}

// abandonAll takes the messages of all runs that did not end in time. It says how many there are.
func (s *session) abandonAll() int {
	n := 0
	for _, sl := range s.slots {
		if sl.abandon() {
			n++
		}
	}
	return n
}
