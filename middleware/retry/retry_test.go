package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/zqueue/zqueue/middleware/retry"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// enqueued is when the deliveries of these tests came.
var enqueued = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// delivery is the third run of ten, an hour after the enqueue.
func delivery() *zq.Delivery {
	return &zq.Delivery{ID: "a", Attempt: 3, MaxAttempts: 10, EnqueuedAt: enqueued, ClaimedAt: enqueued.Add(time.Hour)}
}

// ended is a context that ended with cause, or goes on if that is nil.
func ended(t *testing.T, cause error) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	if t.Cleanup(func() { cancel(nil) }); cause != nil {
		cancel(cause)
	}
	return ctx
}

// decide is what the middleware makes of err.
func decide(ctx context.Context, mw zq.Middleware, d *zq.Delivery, err error) error {
	return mw(zq.HandlerFunc(func(context.Context, *zq.Delivery) error { return err })).Handle(ctx, d)
}

func retried(after time.Duration) zq.Verdict {
	return zq.Verdict{Action: zq.ActionRetry, After: after, Asked: true}
}

func dead(reason string) zq.Verdict { return zq.Verdict{Action: zq.ActionDead, Reason: reason} }

func TestDecide(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	flat := retry.Backoff(retry.Curve{Initial: time.Second, Max: hour}) // the third attempt fails: 4 s
	left := zq.Verdict{Action: zq.ActionRetry}                          // to the core
	old := retry.MaxAge(2 * hour)
	cases := []struct {
		name  string
		err   error
		cause error
		opts  []retry.Option
		want  zq.Verdict
		same  bool // the error itself is handed on
	}{
		{name: "nil", want: zq.Verdict{Action: zq.ActionAck}, same: true},
		{name: "plain", err: errOwn, want: retried(4 * time.Second)},
		{name: "dead", err: zq.Dead("r", errOwn), want: dead("r"), same: true},
		{name: "postpone", err: zq.Postpone(hour), want: zq.Verdict{Action: zq.ActionPostpone, After: hour, Asked: true}, same: true},
		{name: "step aside", err: zq.StepAside(hour), want: zq.Verdict{Action: zq.ActionPostpone, After: hour, Asked: true, Aside: true}, same: true},
		{name: "postpone has no limit", err: zq.Postpone(9 * hour), opts: []retry.Option{retry.MaxAttempts(1), old},
			want: zq.Verdict{Action: zq.ActionPostpone, After: 9 * hour, Asked: true}, same: true},
		{name: "retry after an hour", err: zq.RetryAfter(hour, errOwn), want: retried(hour), same: true}, // B43: beyond what the curve would say
		{name: "retry after, wrapped", err: fmt.Errorf("w: %w", zq.RetryAfter(hour, errOwn)), want: retried(hour), same: true},
		{name: "retry after, exhausted", err: zq.RetryAfter(hour, errOwn), opts: []retry.Option{retry.MaxAttempts(3)}, want: dead(zq.ReasonAttempts)},
		{name: "retry after, up to the age", err: zq.RetryAfter(hour, errOwn), opts: []retry.Option{old}, want: retried(hour), same: true},
		{name: "retry after, beyond the age", err: zq.RetryAfter(hour+1, errOwn), opts: []retry.Option{old}, want: dead(retry.ReasonAge)},
		{name: "permanent", err: backoff.Permanent(errOwn), want: dead(retry.ReasonPermanent)},
		{name: "permanent, wrapped", err: fmt.Errorf("w: %w", backoff.Permanent(errOwn)), want: dead(retry.ReasonPermanent)},
		{name: "permanent within", err: zq.RetryAfter(1, backoff.Permanent(errOwn)), want: dead(retry.ReasonPermanent)},
		{name: "permanent beats postpone", err: errors.Join(zq.Postpone(1), backoff.Permanent(errOwn)), want: dead(retry.ReasonPermanent)},
		{name: "dead beats permanent", err: zq.Dead("r", backoff.Permanent(errOwn)), want: dead("r"), same: true},
		{name: "permanent beats a rule", err: backoff.Permanent(errOwn),
			opts: []retry.Option{retry.On(retry.Is(errOwn), retry.After(0))}, want: dead(retry.ReasonPermanent)},
		{name: "attempts left", err: errOwn, opts: []retry.Option{retry.MaxAttempts(4)}, want: retried(4 * time.Second)},
		{name: "attempts used up", err: errOwn, opts: []retry.Option{retry.MaxAttempts(3)}, want: dead(zq.ReasonAttempts)},
		{name: "attempts used up long ago", err: errOwn, opts: []retry.Option{retry.MaxAttempts(1)}, want: dead(zq.ReasonAttempts)},
		{name: "young", err: errOwn, opts: []retry.Option{retry.MaxAge(hour + 4*time.Second)}, want: retried(4 * time.Second)},
		{name: "old by the delay", err: errOwn, opts: []retry.Option{retry.MaxAge(hour + 4*time.Second - 1)}, want: dead(retry.ReasonAge)},
		{name: "old", err: errOwn, opts: []retry.Option{retry.MaxAge(time.Millisecond)}, want: dead(retry.ReasonAge)},
		{name: "its time was over", err: zq.ErrTimeout, cause: zq.ErrTimeout, want: retried(4 * time.Second)},
		{name: "shutdown", err: context.Canceled, cause: zq.ErrShutdown, want: left, same: true},
		{name: "shutdown, wrapped", err: fmt.Errorf("get: %w", context.Canceled), cause: zq.ErrShutdown, want: left, same: true},
		{name: "shutdown, its deadline", err: context.DeadlineExceeded, cause: zq.ErrShutdown, opts: []retry.Option{retry.MaxAttempts(3)}, want: left, same: true},
		{name: "shutdown, its cause", err: fmt.Errorf("get: %w", zq.ErrShutdown), cause: zq.ErrShutdown, want: left, same: true},
		{name: "shutdown on the last attempt", err: context.Canceled, cause: zq.ErrShutdown, opts: []retry.Option{retry.MaxAttempts(1), old},
			want: left, same: true},
		{name: "shutdown, given up at once", err: backoff.Permanent(context.Canceled), cause: zq.ErrShutdown, want: left, same: true},
		{name: "shutdown, retry after", err: zq.RetryAfter(9*hour, context.Canceled), cause: zq.ErrShutdown, opts: []retry.Option{old},
			want: retried(9 * hour), same: true}, // the core gives it back
		{name: "shutdown, a rule for it", err: context.Canceled, cause: zq.ErrShutdown,
			opts: []retry.Option{retry.On(retry.Is(context.Canceled), retry.ToDead("r"))}, want: left, same: true},
		{name: "shutdown, own error", err: errOwn, cause: zq.ErrShutdown, want: retried(4 * time.Second)},
		{name: "shutdown, own error on the last", err: errOwn, cause: zq.ErrShutdown, opts: []retry.Option{retry.MaxAttempts(3)}, want: dead(zq.ReasonAttempts)},
		{name: "shutdown, dead", err: zq.Dead("r", context.Canceled), cause: zq.ErrShutdown, want: dead("r"), same: true},
		{name: "lease lost", err: context.Canceled, cause: zq.ErrLeaseLost, want: left, same: true},
		{name: "lease lost, own error on the last", err: errOwn, cause: zq.ErrLeaseLost, opts: []retry.Option{retry.MaxAttempts(1)}, want: left, same: true},
		{name: "lease lost, permanent", err: backoff.Permanent(errOwn), cause: zq.ErrLeaseLost, want: left, same: true},
		{name: "a context of its own", err: context.Canceled, want: retried(4 * time.Second)},
	}
	for _, c := range cases {
		out := decide(ended(t, c.cause), must(t, append([]retry.Option{flat}, c.opts...)...), delivery(), c.err)
		if got := zq.Explain(out); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		if c.same != (out == c.err) || !errors.Is(out, c.err) { //nolint:errorlint // the very same error is meant
			t.Errorf("%s: %v became %v", c.name, c.err, out)
		}
	}
}

// What a limit compares with is missing, or odd: there is no limit then.
func TestLimitsWithoutAMeasure(t *testing.T) {
	t.Parallel()
	aged := must(t, retry.MaxAge(time.Millisecond), retry.Backoff(retry.Curve{Initial: time.Millisecond, Max: time.Millisecond}))
	for name, d := range map[string]*zq.Delivery{
		"plain member":       {ClaimedAt: enqueued},
		"built by hand":      {EnqueuedAt: enqueued},
		"clock went back":    {EnqueuedAt: enqueued, ClaimedAt: enqueued.Add(-time.Hour)},
		"far back":           {EnqueuedAt: time.Unix(1<<40, 0), ClaimedAt: time.Unix(-1<<40, 0)},
		"attempt negative":   {Attempt: -5},
		"no number of runs":  {Attempt: 1 << 40},
		"same instant":       {EnqueuedAt: enqueued, ClaimedAt: enqueued},
		"consumer's alone":   {Attempt: 9, MaxAttempts: 10},
		"nothing whatsoever": {},
	} {
		if got := zq.Explain(decide(t.Context(), aged, d, errOwn)); got != retried(time.Millisecond) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := zq.Explain(decide(t.Context(), aged, &zq.Delivery{EnqueuedAt: time.Unix(-1<<40, 0), ClaimedAt: time.Unix(1<<40, 0)}, errOwn)); got != dead(retry.ReasonAge) {
		t.Errorf("ancient: %+v", got)
	}
}

// The lower of the middleware's and the consumer's number counts.
func TestMaxAttemptsIsTheLower(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ attempt, consumer, own, last int }{
		{consumer: 5, own: 0, last: 5}, {consumer: 5, own: 3, last: 3}, {consumer: 3, own: 5, last: 3}, {consumer: 0, own: 4, last: 4},
	} {
		var opts []retry.Option
		if c.own > 0 {
			opts = append(opts, retry.MaxAttempts(c.own))
		}
		mw := must(t, opts...)
		for attempt := 1; attempt <= c.last+1; attempt++ {
			got := zq.Explain(decide(t.Context(), mw, &zq.Delivery{Attempt: attempt, MaxAttempts: c.consumer}, errOwn))
			if want := attempt >= c.last; (got.Action == zq.ActionDead) != want || want && got.Reason != zq.ReasonAttempts {
				t.Errorf("%+v: attempt %d: %+v", c, attempt, got)
			}
		}
	}
}

// The text that is stored with a dead letter says what the handler said.
func TestErrorTextIsKept(t *testing.T) {
	t.Parallel()
	mw := must(t, retry.Backoff(retry.Curve{}), retry.On(retry.Is(io.EOF), retry.Postponed(time.Second)))
	for _, c := range []struct {
		err  error
		want string
	}{
		{backoff.Permanent(fmt.Errorf("card refused: %w", errOwn)), "dead: permanent: card refused: handler's own"},
		{errOwn, "retry after 4s: handler's own"},
		{fmt.Errorf("read: %w", io.EOF), "postponed for 1s: read: EOF"},
	} {
		out := decide(t.Context(), mw, delivery(), c.err)
		if out.Error() != c.want || !errors.Is(out, c.err) {
			t.Errorf("%q, want %q", out, c.want)
		}
	}
}
