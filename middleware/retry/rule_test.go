package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zqueue/zqueue/middleware/retry"
	"github.com/zqueue/zqueue/zqfx/zq"
)

type statusError struct{ code int }

func (e *statusError) Error() string { return fmt.Sprint("status ", e.code) }

// rogueError panics wherever somebody looks into it.
type rogueError struct{}

func (rogueError) Error() string { panic("Error panics") }
func (rogueError) Is(error) bool { panic("Is panics") }
func (rogueError) As(any) bool   { panic("As panics") }

func TestRules(t *testing.T) {
	t.Parallel()
	rules := []retry.Option{
		retry.Backoff(retry.Curve{Initial: time.Second, Max: time.Hour}),
		retry.On(retry.As(func(e *statusError) bool { return e.code == 429 }), retry.After(time.Minute)),
		retry.On(retry.As(func(e *statusError) bool { return e.code < 500 }), retry.ToDead("refused")),
		retry.On(retry.As[*statusError](nil), retry.WithCurve(retry.Curve{Initial: time.Millisecond, Max: time.Second}, 3)),
		retry.On(retry.As[net.Error](nil), retry.WithCurve(retry.Curve{Initial: time.Minute, Max: time.Minute}, 0)),
		retry.On(retry.Is(io.EOF), retry.Postponed(5*time.Second)),
		retry.On(retry.Func(func(err error) bool { return strings.Contains(err.Error(), "odd") }), retry.ToDead("odd")),
		retry.On(retry.Is(io.EOF), retry.ToDead("never: an earlier rule matches")),
	}
	postponed := zq.Verdict{Action: zq.ActionPostpone, After: 5 * time.Second, Asked: true}
	wrapped := func(code int) error { return fmt.Errorf("call: %w", &statusError{code}) }
	for _, c := range []struct {
		name    string
		err     error
		attempt int
		opts    []retry.Option
		want    zq.Verdict
	}{
		{"first match", wrapped(429), 1, nil, retried(time.Minute)},
		{"second", wrapped(404), 1, nil, dead("refused")},
		{"own curve", wrapped(503), 2, nil, retried(2 * time.Millisecond)},
		{"own curve, exhausted", wrapped(503), 3, nil, dead(zq.ReasonAttempts)},
		{"own curve, no own number", &net.DNSError{}, 9, nil, retried(time.Minute)},
		{"own curve, the consumer's number", &net.DNSError{}, 10, nil, dead(zq.ReasonAttempts)},
		{"own curve, too old", &net.DNSError{}, 1, []retry.Option{retry.MaxAge(time.Hour)}, dead(retry.ReasonAge)},
		{"postponed", io.EOF, 10, nil, postponed},
		{"function", errors.New("how odd"), 1, nil, dead("odd")},
		{"none matches", errOwn, 1, nil, retried(time.Second)},
		{"after, exhausted", wrapped(429), 10, nil, dead(zq.ReasonAttempts)},
		{"after, too old", wrapped(429), 1, []retry.Option{retry.MaxAge(time.Hour + time.Minute - 1)}, dead(retry.ReasonAge)},
	} {
		d := delivery()
		d.Attempt = c.attempt
		out := decide(t.Context(), must(t, append(rules, c.opts...)...), d, c.err)
		if got := zq.Explain(out); got != c.want || !errors.Is(out, c.err) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// FAULTS B29, and all faults at once.
func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	ok := retry.Is(io.EOF)
	for _, c := range []struct {
		name        string
		make        func(time.Duration) retry.Option
		zero        bool
		least, most time.Duration
	}{
		{"MaxAge", retry.MaxAge, false, time.Millisecond, zq.MaxDelay},
		{"On[0].After", func(d time.Duration) retry.Option { return retry.On(ok, retry.After(d)) }, true, time.Millisecond, zq.MaxDelay},
		{"On[0].Postponed", func(d time.Duration) retry.Option { return retry.On(ok, retry.Postponed(d)) }, false, time.Millisecond, zq.MaxDelay},
		{"Backoff.Initial", func(d time.Duration) retry.Option {
			return retry.Backoff(retry.Curve{Initial: d, Max: time.Hour})
		}, true, time.Millisecond, time.Hour},
	} {
		for _, d := range []time.Duration{0, 1, 999 * time.Microsecond, time.Millisecond, -1, c.most, c.most + 1, math.MinInt64, math.MaxInt64} {
			_, err := retry.New(c.make(d))
			good := d >= c.least && d <= c.most || d == 0 && c.zero
			if good != (err == nil) || err != nil && !slices.Equal(fields(err), []string{"retry." + c.name}) {
				t.Errorf("%s %v: %v", c.name, d, err)
			}
		}
	}
	for n, good := range map[int]bool{0: false, 1: true, 1_000_000: true, 1_000_001: false, -1: false, math.MinInt: false} {
		if _, err := retry.New(retry.MaxAttempts(n)); good != (err == nil) {
			t.Errorf("MaxAttempts %d: %v", n, err)
		}
		own := good || n == 0
		if _, err := retry.New(retry.On(ok, retry.WithCurve(retry.Curve{}, n))); own != (err == nil) {
			t.Errorf("WithCurve %d: %v", n, err)
		}
	}
	_, err := retry.New(nil, retry.MaxAttempts(0), retry.MaxAge(0), retry.Backoff(retry.Curve{Max: -1, Multiplier: 0.5}),
		retry.On(retry.Match{}, retry.Action{}), retry.On(retry.Is(nil), retry.ToDead("")), retry.On(retry.Func(nil), retry.ToDead(strings.Repeat("x", 65))),
		retry.On(ok, retry.WithCurve(retry.Curve{Jitter: 2}, -1)))
	want := []string{
		"retry.MaxAttempts", "retry.MaxAge", "retry.Backoff.Max", "retry.Backoff.Initial", "retry.Backoff.Multiplier",
		"retry.On[0]", "retry.On[0]", "retry.On[1]", "retry.On[1].ToDead", "retry.On[2]", "retry.On[2].ToDead",
		"retry.On[3].WithCurve.Jitter", "retry.On[3].WithCurve.maxAttempts",
	}
	if diff := cmp.Diff(want, fields(err)); diff != "" || !errors.Is(err, zq.ErrInvalid) {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

// FAULTS B49: whatever panics, the decision holds.
func TestPanicsLoseNoDecision(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	flat := retry.Backoff(retry.Curve{Initial: time.Second, Max: time.Hour})
	hook := func(v any) retry.Option {
		return retry.OnRetry(func(context.Context, *zq.Delivery, retry.Decision) { panic(v) })
	}
	matcher := retry.On(retry.Func(func(error) bool { panic("matcher") }), retry.ToDead("r"))
	for name, c := range map[string]struct {
		err  error
		opts []retry.Option
	}{
		"hook":          {errOwn, []retry.Option{hook("boom")}},
		"hook, nil":     {errOwn, []retry.Option{hook(nil)}},
		"hook, rogue":   {errOwn, []retry.Option{hook(rogueError{})}},
		"matcher":       {errOwn, []retry.Option{matcher}},
		"matcher, hook": {errOwn, []retry.Option{matcher, hook("boom")}},
		"condition":     {&statusError{}, []retry.Option{retry.On(retry.As(func(*statusError) bool { panic("cond") }), retry.ToDead("r"))}},
		"rogue error":   {rogueError{}, nil},
		"typed nil":     {(*statusError)(nil), nil},
	} {
		for cap, want := range map[int]zq.Verdict{4: retried(4 * time.Second), 3: dead(zq.ReasonAttempts)} {
			logger := retry.Logger(slog.New(slog.NewTextHandler(&log, nil)))
			mw := must(t, append([]retry.Option{flat, retry.MaxAttempts(cap), logger}, c.opts...)...)
			for range 2 {
				if got := zq.Explain(decide(t.Context(), mw, delivery(), c.err)); got != want {
					t.Errorf("%s: %+v, want %+v", name, got, want)
				}
			}
		}
	}
	if n := strings.Count(log.String(), "OnRetry panicked"); n != 4*2 { // four middlewares with such a hook, two numbers of attempts
		t.Errorf("%d lines, want one for each middleware:\n%s", n, &log)
	}
}

// A panic's text is kept beside the handler's.
func TestPanicInMatcherIsTold(t *testing.T) {
	t.Parallel()
	mw := must(t, retry.On(retry.Func(func(error) bool { panic("matcher broke") }), retry.ToDead("r")))
	out := decide(t.Context(), mw, delivery(), errOwn)
	if p, ok := errors.AsType[*zq.PanicError](out); !ok || len(p.Stack) == 0 || !strings.Contains(out.Error(), "matcher broke") ||
		!strings.Contains(out.Error(), errOwn.Error()) {
		t.Errorf("%v", out)
	}
}

func TestOnRetryIsTold(t *testing.T) {
	t.Parallel()
	var told []retry.Decision
	mw := must(t, retry.Backoff(retry.Curve{Initial: time.Second, Max: time.Hour}),
		retry.OnRetry(func(_ context.Context, d *zq.Delivery, dec retry.Decision) {
			if d.ID != "a" {
				t.Errorf("told about %q", d.ID)
			}
			told = append(told, dec)
		}))
	gone := zq.Dead("r", nil)
	for _, err := range []error{nil, errOwn, gone} {
		_ = decide(t.Context(), mw, delivery(), err)
	}
	_ = decide(ended(t, zq.ErrShutdown), mw, delivery(), context.Canceled)
	_ = decide(ended(t, zq.ErrLeaseLost), mw, delivery(), errOwn)
	if len(told) != 2 || told[0].Verdict != retried(4*time.Second) || !errors.Is(told[0].Err, errOwn) ||
		told[1].Verdict != dead("r") || !errors.Is(told[1].Err, gone) {
		t.Errorf("told %+v", told)
	}
}
