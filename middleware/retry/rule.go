package retry

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Match tells which errors a rule is for. Is, As and Func make one; the zero value is refused.
type Match struct {
	fits  func(error) bool
	fault string
}

// Is matches errors that are target, by errors.Is.
func Is(target error) Match {
	if target == nil {
		return Match{fault: "Is(nil)"}
	}
	return Match{fits: func(err error) bool { return errors.Is(err, target) }}
}

// As matches errors that have a T in their chain, by errors.As, for which cond holds; a nil cond always does. cond
// must be safe for concurrent use. One that panics decides nothing: the error is retried by the curve.
func As[T error](cond func(T) bool) Match {
	return Match{fits: func(err error) bool {
		e, ok := errors.AsType[T](err)
		return ok && (cond == nil || cond(e))
	}}
}

// Func matches errors by a function. It must be safe for concurrent use. One that panics decides nothing: the error
// is retried by the curve.
func Func(f func(error) bool) Match {
	if f == nil {
		return Match{fault: "Func(nil)"}
	}
	return Match{fits: f}
}

func (m Match) faults(field string) []error {
	if m.fits != nil {
		return nil
	}
	value := m.fault
	if value == "" {
		value = "the zero Match"
	}
	return []error{invalid(field, value, "Is, As or Func of something")}
}

// Action is what a rule does with a message. ToDead, After, WithCurve and Postponed make one; the zero value is
// refused.
type Action struct {
	act   func(p *policy, d *zq.Delivery, err error) error
	check func(field string) []error
}

// ToDead makes the message a dead letter at once. reason is a short word to filter by: 1 to 64 bytes.
func ToDead(reason string) Action {
	return Action{
		act: func(_ *policy, _ *zq.Delivery, err error) error { return zq.Dead(reason, err) },
		check: func(field string) []error {
			if len(reason) >= 1 && len(reason) <= maxReason {
				return nil
			}
			return []error{invalid(field+".ToDead", strconv.Quote(reason), fmt.Sprintf("1 to %d bytes", maxReason))}
		},
	}
}

// After retries after d: 0 for at once, or 1 ms to zq.MaxDelay. The limits hold.
func After(d time.Duration) Action {
	return Action{
		act:   func(p *policy, m *zq.Delivery, err error) error { return p.again(m, err, d, 0) },
		check: func(field string) []error { return between(field+".After", d, 0, zq.MaxDelay) },
	}
}

// WithCurve retries by a curve of its own, and at most for this many attempts: 1 to 1,000,000, or 0 for no own
// number. A higher number than that of the middleware or the consumer changes nothing.
func WithCurve(c Curve, maxAttempts int) Action {
	return Action{
		act: func(p *policy, d *zq.Delivery, err error) error { return p.byCurve(d, err, c, maxAttempts) },
		check: func(field string) []error {
			faults := c.faults(field + ".WithCurve")
			if maxAttempts < 0 || maxAttempts > mostAttempts {
				faults = append(faults, invalid(field+".WithCurve.maxAttempts", maxAttempts, fmt.Sprintf("0 to %d", mostAttempts)))
			}
			return faults
		},
	}
}

// Postponed puts the message off by d without charging an attempt, as zq.Postpone: 1 ms to zq.MaxDelay. No limit
// holds, so it is for what is sure to end, such as a pause of somebody else's.
func Postponed(d time.Duration) Action {
	return Action{
		act: func(_ *policy, _ *zq.Delivery, err error) error {
			return fmt.Errorf("%w: %w", zq.Postpone(d), err)
		},
		check: func(field string) []error { return between(field+".Postponed", d, time.Millisecond, zq.MaxDelay) },
	}
}

func (a Action) faults(field string) []error {
	if a.act == nil {
		return []error{invalid(field, "the zero Action", "ToDead, After, WithCurve or Postponed")}
	}
	return a.check(field)
}

// between refuses what Redis would round: a delay is 0 where that is allowed, or at least 1 ms.
func between(field string, d, least, most time.Duration) []error {
	if d == least || d >= time.Millisecond && d <= most {
		return nil
	}
	want := fmt.Sprintf("%s to %s", time.Millisecond, most)
	if least == 0 {
		want = "0s, or " + want
	}
	return []error{invalid(field, d, want)}
}
