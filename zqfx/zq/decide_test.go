package zq_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/zqueue/zqueue/zqfx/zq"
)

var errOwn = errors.New("handler's own")

// rudeError is an error whose Error method panics.
type rudeError struct{}

func (rudeError) Error() string { panic("no words") }

// silentError is an error type whose nil pointer is an error all the same.
type silentError struct{ text string }

func (s *silentError) Error() string { return s.text }

func TestDecide(t *testing.T) {
	t.Parallel()
	const second = time.Second
	nobody := error((*silentError)(nil))
	cases := []struct {
		name       string
		err, cause error
		attempt    int
		want       string
		delay      time.Duration
		reason     string
	}{
		{"nil", nil, nil, 1, "ack", 0, ""},
		{"nil on the last attempt", nil, nil, 3, "ack", 0, ""},
		{"nil after the lease", nil, zq.ErrLeaseLost, 1, "ack", 0, ""}, // the script refuses it, and counts
		{"nil after shutdown", nil, zq.ErrShutdown, 1, "ack", 0, ""},
		{"nil after its time", nil, zq.ErrTimeout, 1, "ack", 0, ""},
		{"error", errOwn, nil, 1, "retry", 7 * second, ""},
		{"error before the last", errOwn, nil, 2, "retry", 7 * second, ""},
		{"error on the last", errOwn, nil, 3, "bury", 0, zq.ReasonAttempts},
		{"error past the last", errOwn, nil, 99, "bury", 0, zq.ReasonAttempts},
		{"retry after", zq.RetryAfter(second, errOwn), nil, 1, "retry", second, ""},
		{"retry after nothing", zq.RetryAfter(second, nil), nil, 1, "retry", second, ""},
		{"retry after on the last", zq.RetryAfter(second, errOwn), nil, 3, "bury", 0, zq.ReasonAttempts},
		{"retry after, negative", zq.RetryAfter(-second, errOwn), nil, 1, "retry", 0, ""},
		{"retry after, endless", zq.RetryAfter(math.MaxInt64, errOwn), nil, 1, "retry", zq.MaxDelay, ""},
		{"postpone", zq.Postpone(second), nil, 1, "wait", second, ""},
		{"postpone on the last", zq.Postpone(second), nil, 3, "wait", second, ""},
		{"postpone, negative", zq.Postpone(math.MinInt64), nil, 1, "wait", 0, ""},
		{"postpone, endless", zq.Postpone(math.MaxInt64), nil, 1, "wait", zq.MaxDelay, ""},
		{"dead", zq.Dead("r", errOwn), nil, 1, "bury", 0, "r"},
		{"dead without an error", zq.Dead("r", nil), nil, 1, "bury", 0, "r"},
		{"dead on the last", zq.Dead("r", errOwn), nil, 3, "bury", 0, "r"},
		{"wrapped postpone", fmt.Errorf("a: %w", zq.Postpone(second)), nil, 1, "wait", second, ""},
		{"wrapped dead", fmt.Errorf("a: %w", fmt.Errorf("b: %w", zq.Dead("r", nil))), nil, 1, "bury", 0, "r"},
		{"wrapped retry after", fmt.Errorf("a: %w", zq.RetryAfter(second, errOwn)), nil, 1, "retry", second, ""},
		{"joined, one dead", errors.Join(errOwn, zq.Dead("r", nil)), nil, 1, "bury", 0, "r"},
		{"joined, dead beats postpone", errors.Join(zq.Postpone(second), zq.Dead("r", nil)), nil, 1, "bury", 0, "r"},
		{"joined, postpone beats retry after", errors.Join(zq.RetryAfter(2*second, errOwn), zq.Postpone(second)), nil, 1, "wait", second, ""},
		{"lease lost", errOwn, zq.ErrLeaseLost, 1, "drop", 0, ""},
		{"lease lost beats dead", zq.Dead("r", nil), zq.ErrLeaseLost, 3, "drop", 0, ""},
		{"lease lost, wrapped cause", errOwn, fmt.Errorf("x: %w", zq.ErrLeaseLost), 1, "drop", 0, ""},
		{"shutdown, passes it on", context.Canceled, zq.ErrShutdown, 1, "release", 0, ""},
		{"shutdown, passes it on wrapped", fmt.Errorf("get: %w", context.Canceled), zq.ErrShutdown, 1, "release", 0, ""},
		{"shutdown, passes the cause on", fmt.Errorf("get: %w", zq.ErrShutdown), zq.ErrShutdown, 1, "release", 0, ""},
		{"shutdown on the last attempt", context.Canceled, zq.ErrShutdown, 3, "release", 0, ""},
		{"shutdown, own error", errOwn, zq.ErrShutdown, 1, "retry", 7 * second, ""},
		{"shutdown, own error on the last", errOwn, zq.ErrShutdown, 3, "bury", 0, zq.ReasonAttempts},
		{"shutdown, dead", zq.Dead("r", context.Canceled), zq.ErrShutdown, 1, "bury", 0, "r"},
		{"shutdown, postponed", zq.Postpone(second), zq.ErrShutdown, 1, "wait", second, ""},
		{"its time is over, passes it on", context.Canceled, zq.ErrTimeout, 1, "retry", 7 * second, ""},
		{"its time is over, on the last", context.Canceled, zq.ErrTimeout, 3, "bury", 0, zq.ReasonAttempts},
		{"its time is over, dead", zq.Dead("r", nil), zq.ErrTimeout, 1, "bury", 0, "r"},
		{"a context of its own ended", context.DeadlineExceeded, nil, 1, "retry", 7 * second, ""},
		{"a context of its own was cancelled", context.Canceled, nil, 1, "retry", 7 * second, ""},
		{"panic", &zq.PanicError{Value: "boom"}, nil, 1, "retry", 7 * second, ""},
		{"panic with a verdict", &zq.PanicError{Value: zq.Dead("r", nil)}, nil, 1, "bury", 0, "r"},
		{"error that cannot speak", rudeError{}, nil, 1, "retry", 7 * second, ""},
		{"error that cannot speak, on the last", rudeError{}, nil, 3, "bury", 0, zq.ReasonAttempts},
		{"typed nil", nobody, nil, 1, "retry", 7 * second, ""},
	}
	policy := func(*zq.Delivery, error) time.Duration { return 7 * second }
	for _, c := range cases {
		got := zq.Decide(&zq.Delivery{ID: "a", Attempt: c.attempt}, c.err, c.cause, 3, policy)
		if got.Verdict != c.want || got.Delay != c.delay || got.Reason != c.reason {
			t.Errorf("%s: got %s %v %q, want %s %v %q", c.name, got.Verdict, got.Delay, got.Reason, c.want, c.delay, c.reason)
		}
		if c.err != nil && c.name != "typed nil" && !errors.Is(got.Err, c.err) {
			t.Errorf("%s: the error is no longer there: %T", c.name, got.Err)
		}
	}
}

// A policy of the user is held to its bounds, and told what it decides about.
func TestDecideBoundsThePolicy(t *testing.T) {
	t.Parallel()
	for given, want := range map[time.Duration]time.Duration{
		-1: 0, math.MinInt64: 0, 0: 0, 1: 1, zq.MaxDelay: zq.MaxDelay, zq.MaxDelay + 1: zq.MaxDelay, math.MaxInt64: zq.MaxDelay,
	} {
		policy := func(d *zq.Delivery, err error) time.Duration {
			if d.Attempt != 2 || !errors.Is(err, errOwn) {
				t.Errorf("the policy was asked about attempt %d, error %v", d.Attempt, err)
			}
			return given
		}
		if got := zq.Decide(&zq.Delivery{Attempt: 2}, errOwn, nil, 3, policy); got.Verdict != "retry" || got.Delay != want {
			t.Errorf("policy says %v: got %s %v, want %v", given, got.Verdict, got.Delay, want)
		}
	}
}

// The timeout that ended a handler is kept in what is stored, whatever the handler made of it.
func TestDecideNamesTheTimeout(t *testing.T) {
	t.Parallel()
	policy := func(*zq.Delivery, error) time.Duration { return 0 }
	for _, err := range []error{context.Canceled, fmt.Errorf("get: %w", context.Canceled)} {
		got := zq.Decide(&zq.Delivery{Attempt: 1}, err, zq.ErrTimeout, 3, policy)
		if !errors.Is(got.Err, zq.ErrTimeout) {
			t.Errorf("%v: stored as %v", err, got.Err)
		}
	}
	if got := zq.Decide(&zq.Delivery{Attempt: 1}, errOwn, zq.ErrTimeout, 3, policy); errors.Is(got.Err, zq.ErrTimeout) {
		t.Errorf("the handler's own error is stored as %v", got.Err)
	}
}

func TestVerdictErrorsKeepTheirCause(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"dead": zq.Dead("r", errOwn), "retry after": zq.RetryAfter(1, errOwn)} {
		if !errors.Is(err, errOwn) || !strings.Contains(err.Error(), errOwn.Error()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := zq.Dead("reason", nil).Error(); !strings.Contains(got, "reason") {
		t.Errorf("dead without an error: %q", got)
	}
	p := &zq.PanicError{Value: errOwn}
	if !errors.Is(p, errOwn) {
		t.Error("a panic with an error is not that error")
	}
	if errors.Unwrap(&zq.PanicError{Value: "text"}) != nil {
		t.Error("a panic with a text wraps something")
	}
}

// A dead letter's story is a list of fields with NUL between them: a reason must not add one.
func TestDeadReasonIsAWord(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"card":                        "card",
		"":                            "",
		"a\x00b":                      "ab",
		"a\nb\tc\x7f":                 "abc",
		"\x00\x00\x00\x00\x00":        "",
		strings.Repeat("r", 99):       strings.Repeat("r", 64),
		strings.Repeat("é", 99):       strings.Repeat("é", 32),
		"bad \xff\xfe bytes":          "bad  bytes",
		"a" + strings.Repeat("é", 40): "a" + strings.Repeat("é", 31),
	} {
		got := zq.Decide(&zq.Delivery{}, zq.Dead(given, nil), nil, 3, nil).Reason
		if got != want {
			t.Errorf("Dead(%q): reason %q, want %q", given, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"", 0, ""}, {"abc", 3, "abc"}, {"abc", 2, "ab"}, {"abc", 0, ""}, {"é", 1, ""}, {"aé", 2, "a"}, {"aé", 3, "aé"},
		{"👩‍🚀", 5, "👩"}, {"\xff", 9, ""}, {"a\xffb", 9, "ab"}, {"a\xffb", 2, "a"}, {"a\x00b", 9, "a\x00b"},
	} {
		got := zq.Clip(c.text, c.most)
		if got != c.want || !utf8.ValidString(got) || len(got) > c.most {
			t.Errorf("clip(%q, %d) = %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

func FuzzClip(f *testing.F) {
	f.Add("aé👩‍🚀\xff", 3)
	f.Fuzz(func(t *testing.T, text string, most int) {
		most = max(0, most%1000)
		got := zq.Clip(text, most)
		if len(got) > most || !utf8.ValidString(got) {
			t.Errorf("clip(%q, %d) = %q", text, most, got)
		}
		if utf8.ValidString(text) && !strings.HasPrefix(text, got) {
			t.Errorf("clip(%q, %d) = %q is no prefix", text, most, got)
		}
		if utf8.ValidString(text) && len(text) <= most && got != text {
			t.Errorf("clip(%q, %d) = %q lost something", text, most, got)
		}
	})
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"nil":               {nil, ""},
		"plain":             {errOwn, "handler's own"},
		"dead":              {zq.Dead("r", errOwn), "handler's own"},
		"dead without":      {zq.Dead("r", nil), ""},
		"retry after":       {zq.RetryAfter(time.Second, errOwn), "handler's own"},
		"wrapped dead":      {fmt.Errorf("w: %w", zq.Dead("r", errOwn)), "w: dead: r: handler's own"},
		"panics":            {rudeError{}, "zq_test.rudeError, whose Error method panics"},
		"dead that panics":  {zq.Dead("r", rudeError{}), "zq_test.rudeError, whose Error method panics"},
		"wraps a panicking": {&wrapsRudeError{}, "*zq_test.wrapsRudeError, whose Error method panics"},
		"typed nil":         {(*silentError)(nil), "*zq_test.silentError, whose Error method panics"},
		"too long":          {errors.New(strings.Repeat("é", 60)), strings.Repeat("é", 50)},
		"not UTF-8":         {errors.New("a\xffb"), "ab"},
	} {
		if got := zq.ErrorText(c.err, 100); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

type wrapsRudeError struct{}

func (*wrapsRudeError) Error() string { return "w: " + rudeError{}.Error() }

// The default delay grows to its cap, stays there at any attempt, is never nothing, and is the same for the
// same decision.
func TestDefaultRetryDelay(t *testing.T) {
	t.Parallel()
	attempts := []int{math.MinInt, -1, 0, 310, math.MaxInt32, math.MaxInt - 1, math.MaxInt}
	for attempt := range 130 {
		attempts = append(attempts, attempt)
	}
	for _, attempt := range attempts {
		for i := range 50 {
			d := &zq.Delivery{ID: fmt.Sprintf("id-%d", i), Attempt: attempt}
			got := zq.DefaultRetryDelay(d, errOwn)
			full := 5 * time.Minute
			if attempt >= math.MinInt+1 && attempt <= 9 {
				full = min(full, time.Second<<max(attempt-1, 0))
			}
			if got > full || got <= full*3/4-1 {
				t.Fatalf("attempt %d of %s: %v, want in (%v, %v]", attempt, d.ID, got, full*3/4, full)
			}
			if again := zq.DefaultRetryDelay(d, nil); again != got {
				t.Fatalf("attempt %d of %s: %v, then %v", attempt, d.ID, got, again)
			}
		}
	}
}

func TestDefaultRetryDelaySpreads(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]bool{}
	for i := range 1000 {
		seen[zq.DefaultRetryDelay(&zq.Delivery{ID: fmt.Sprint(i), Attempt: 5}, nil)/(100*time.Millisecond)] = true
	}
	if len(seen) < 30 {
		t.Errorf("a thousand messages that fail together come back in %d of 40 tenths of a second", len(seen))
	}
	a, b := &zq.Delivery{ID: "a", Attempt: 12}, &zq.Delivery{ID: "a", Attempt: 13}
	if zq.DefaultRetryDelay(a, nil) == zq.DefaultRetryDelay(b, nil) {
		t.Error("the jitter does not depend on the attempt")
	}
}
