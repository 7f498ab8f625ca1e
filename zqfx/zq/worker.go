package zq

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// errGoexit is the result of a handler that ended its goroutine.
var errGoexit = errors.New("zq: handler called runtime.Goexit")

// worker works off units in one slot. A handler that ends the goroutine gets a new one in its place.
func (s *session) worker(sl *slot) {
	whole := false
	defer func() {
		if !whole {
			go s.worker(sl) // same place in the wait group
			return
		}
		s.workers.Done()
	}()
	for u := range s.work {
		s.load.busy.Add(1)
		s.load.units.Add(-1)
		s.unit(sl, u)
	}
	whole = true
}

// unit runs a unit's messages one after the other, as long as their order allows.
func (s *session) unit(sl *slot, u *unit) {
	at, whole := 0, false
	defer func() {
		if !whole { // the handler ended the goroutine
			s.leave(u, at+1, u.goOn)
		}
		s.load.busy.Add(-1)
		if s.full.Load() && s.load.want(&s.cfg).entries > 0 {
			s.nudge()
		}
	}()
	for ; at < len(u.msgs); at++ {
		if u.claim.overdue(time.Now()) {
			u.claim.lose() // this process stood still for longer than its lease: somebody else may be at the key
		}
		if u.claim.isLost() || s.stopping() {
			s.leave(u, at, true)
			break
		}
		s.load.messages.Add(-1)
		if u.goOn = false; !s.run(sl, u, &u.msgs[at], len(u.msgs)-at-1) {
			s.leave(u, at+1, false)
			break
		}
	}
	whole = true
}

// leave ends a unit before its end: what is left of it is given back, or has left with the message before.
func (s *session) leave(u *unit, from int, back bool) {
	rest := len(u.msgs) - from
	if rest <= 0 {
		return
	}
	s.load.messages.Add(-int64(rest))
	if back && !u.claim.isLost() {
		s.release(u, from)
	}
}

// release gives the unstarted messages of a unit back, uncharged. Those of a key go with its first.
func (s *session) release(u *unit, from int) {
	o := script.Retry(u.msgs[from].Member, 0, false, true, "", "")
	u.claim.add(outcome{other: &o, leaves: len(u.msgs) - from})
	s.count.released.Add(int64(len(u.msgs) - from))
}

// run runs one message and records its outcome; false if the rest of its key must not follow.
func (s *session) run(sl *slot, u *unit, t *script.Taken, rest int) (goOn bool) {
	d, err := newDelivery(s.queue, t, u.claim)
	if err != nil {
		dec := decide(d, err, nil, s.rules)
		s.observeDecision(d, dec, nil, 0)
		return s.record(u, d, dec, rest)
	}
	ctx, cancel := context.WithCancelCause(u.claim.ctx)
	start := time.Now()
	sl.begin(d, u, rest, cancel, start)
	s.count.started.Add(1)
	err = errGoexit
	defer func() {
		ran := time.Since(start)
		s.load.ran(ran)
		cause := context.Cause(ctx)
		cancel(nil)
		if !sl.finish() {
			s.count.late.Add(1)
			goOn = false
			return
		}
		goOn = s.conclude(u, d, ended{err, cause, ran}, rest)
		u.goOn = goOn
	}()
	err = invoke(ctx, s.handler, d)
	return goOn
}

// invoke turns a panic into an error.
func invoke(ctx context.Context, h Handler, d *Delivery) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	err = h.Handle(ctx, d)
	returned = true
	return err
}

// ended is how a run ended.
type ended struct {
	err, cause error
	ran        time.Duration
}

// conclude decides and records; an ack whose effects do not hold becomes a failure.
func (s *session) conclude(u *unit, d *Delivery, e ended, rest int) bool {
	dec := judge(d, e.err, e.cause, s.rules)
	for {
		s.observeDecision(d, dec, e.cause, e.ran)
		dec.trace = d.trace // here, where the handler has returned and writes to it no more
		code, goOn := s.recordAndWait(u, d, dec, rest)
		if dec.verdict == ack && d.attached() && code == applied {
			s.count.acked.Add(1)
		}
		if dec.verdict != ack || code <= applied {
			return goOn
		}
		dec = judge(d, effectError(d.effects, code), nil, s.rules)
	}
}

// recordAndWait records an outcome, and waits for it where what follows depends on it.
func (s *session) recordAndWait(u *unit, d *Delivery, dec decision, rest int) (code int, goOn bool) {
	o, goOn := s.outcome(u, d, dec, rest)
	if o == nil {
		return applied, goOn
	}
	if !(d.attached() && dec.verdict == ack) && !(s.cfg.ConfirmEach && u.key != "") {
		u.claim.add(*o)
		return applied, goOn
	}
	o.done = make(chan int, 1)
	u.claim.add(*o)
	select {
	case code = <-o.done:
	case <-s.io.Done(): // the drain is over and Redis has not answered
		code = script.CodeLost
	}
	return code, goOn && code == applied
}

// record is recordAndWait without the wait.
func (s *session) record(u *unit, d *Delivery, dec decision, rest int) (goOn bool) {
	o, goOn := s.outcome(u, d, dec, rest)
	if o != nil {
		u.claim.add(*o)
	}
	return goOn
}

// outcome turns a decision into what settle takes; goOn says whether the next message of the key may start.
func (s *session) outcome(u *unit, d *Delivery, dec decision, rest int) (o *outcome, goOn bool) {
	block := u.key == "" || s.cfg.OnFailure == BlockKey
	back := func(delay time.Duration, charge, block bool) (*outcome, bool) {
		other := script.Retry(d.member, delay, charge, block, errorText(dec.err, maxRetryText), dec.trace)
		if block {
			return &outcome{other: &other, leaves: 1 + rest, trace: dec.trace}, false
		}
		return &outcome{other: &other, leaves: 1, trace: dec.trace}, true
	}
	switch dec.verdict {
	case ack:
		if d.attached() { // counted when its effects hold
			other := script.AckWith(d.member, d.dedupe, wireEffects(d.effects), d.follow, d.rouse...)
			return &outcome{other: &other, leaves: 1, bytes: d.bytes, trace: dec.trace}, true
		}
		s.count.acked.Add(1)
		return &outcome{member: d.member, keep: d.dedupe, leaves: 1, trace: dec.trace}, true
	case retry:
		s.count.failed.Add(1)
		return back(dec.delay, true, block)
	case wait:
		s.count.postponed.Add(1)
		return back(dec.delay, false, block)
	case aside:
		s.count.postponed.Add(1)
		return back(dec.delay, false, u.key == "")
	case release:
		s.count.released.Add(int64(1 + rest))
		return back(0, false, true)
	case bury:
		s.count.dead.Add(1)
		other := script.Dead(d.member, dec.reason, errorText(dec.err, maxErrorText), s.cfg.OnDeath.wire(), dec.trace)
		if u.key != "" && s.cfg.OnDeath != Continue {
			return &outcome{other: &other, leaves: 1 + rest, trace: dec.trace}, false
		}
		return &outcome{other: &other, leaves: 1, trace: dec.trace}, true
	}
	return nil, false // drop: the lease is gone, and the claim is accounted for
}
