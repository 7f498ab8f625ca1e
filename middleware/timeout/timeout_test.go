package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zqueue/zqueue/middleware/timeout"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// passOn waits for its context to end and says that.
func passOn(ctx context.Context, _ *zq.Delivery) error {
	<-ctx.Done()
	return fmt.Errorf("get: %w", ctx.Err())
}

// The context ends exactly at the limit, with its cause, and what comes out says so.
func TestLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := must(t, 5*time.Second)(zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
			err := passOn(ctx, d)
			if cause := context.Cause(ctx); !errors.Is(cause, zq.ErrTimeout) {
				t.Errorf("the cause is %v", cause)
			}
			return err
		}))
		start := time.Now()
		err := h.Handle(t.Context(), &zq.Delivery{})
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("it took %v", took)
		}
		if !errors.Is(err, zq.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "5s") ||
			!strings.Contains(err.Error(), "get: ") {
			t.Errorf("%v", err)
		}
	})
}

// rogueError panics wherever somebody looks into it.
type rogueError struct{}

func (rogueError) Error() string { panic("Error panics") }
func (rogueError) Is(error) bool { panic("Is panics") }

// What the handler says after the limit counts, unless it only passes the end of the context on.
func TestOwnErrorBeatsTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cases := map[string]struct {
			err   error
			named bool // is a zq.ErrTimeout
			want  zq.Action
		}{
			"nil":              {nil, false, zq.ActionAck},
			"own":              {errOwn, false, zq.ActionRetry},
			"own dead":         {zq.Dead("r", errOwn), false, zq.ActionDead},
			"rogue":            {rogueError{}, false, ""},
			"deadline":         {context.DeadlineExceeded, true, zq.ActionRetry},
			"cancelled":        {context.Canceled, true, zq.ActionRetry},
			"the cause itself": {zq.ErrTimeout, true, zq.ActionRetry},
			"dead of it":       {zq.Dead("r", context.DeadlineExceeded), true, zq.ActionDead},
			"later for it":     {zq.RetryAfter(time.Hour, context.DeadlineExceeded), true, zq.ActionRetry},
		}
		for name, c := range cases {
			out := must(t, time.Second)(zq.HandlerFunc(func(ctx context.Context, _ *zq.Delivery) error {
				<-ctx.Done()
				return c.err
			})).Handle(t.Context(), &zq.Delivery{})
			if !c.named && out != c.err { //nolint:errorlint // the very same error is meant
				t.Errorf("%s became another", name)
			}
			if name == "rogue" {
				continue
			}
			if c.named && !strings.Contains(out.Error(), "(1s)") {
				t.Errorf("%s: the limit is not told: %v", name, out)
			}
			if errors.Is(out, zq.ErrTimeout) != c.named || c.err != nil && !errors.Is(out, c.err) || zq.Explain(out).Action != c.want {
				t.Errorf("%s: %v", name, out)
			}
		}
	})
}

// Before the limit, an error that looks like one is the handler's own affair.
func TestWithinTheLimit(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, errOwn, context.DeadlineExceeded, context.Canceled} {
		h := must(t, time.Hour)(zq.HandlerFunc(func(context.Context, *zq.Delivery) error { return err }))
		if out := h.Handle(t.Context(), &zq.Delivery{}); out != err { //nolint:errorlint // the very same error is meant
			t.Errorf("%v became %v", err, out)
		}
	}
}

// What ends the context from outside, earlier, keeps its name.
func TestOuterEndKeepsItsCause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := must(t, time.Hour)(zq.HandlerFunc(passOn))
		for _, cause := range []error{zq.ErrShutdown, zq.ErrLeaseLost, zq.ErrCancelled, zq.ErrTimeout} {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(cause) })
			err := h.Handle(ctx, &zq.Delivery{})
			if !errors.Is(err, context.Canceled) || errors.Is(err, zq.ErrTimeout) {
				t.Errorf("%v: %v", cause, err)
			}
			cancel(nil)
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := h.Handle(ctx, &zq.Delivery{})
		if time.Since(start) != time.Second || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, zq.ErrTimeout) {
			t.Errorf("a deadline from outside: %v after %v", err, time.Since(start))
		}
	})
}

func TestForKind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mw := must(t, 10*time.Second, timeout.ForKind("mail.send", 5*time.Second), timeout.ForKind("report", time.Hour),
			timeout.ForKind("import", zq.Unlimited))
		for kind, want := range map[string]time.Duration{
			"": 10 * time.Second, "other": 10 * time.Second, "mail.send": 5 * time.Second, "report": time.Hour, "import": 0,
		} {
			start := time.Now()
			err := mw(zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
				if deadline, ok := ctx.Deadline(); ok != (want > 0) || ok && deadline.Sub(start) != want {
					t.Errorf("%s: deadline after %v, %t", kind, deadline.Sub(start), ok)
				}
				if want == 0 {
					return nil
				}
				return passOn(ctx, d)
			})).Handle(t.Context(), &zq.Delivery{Kind: kind})
			if time.Since(start) != want || errors.Is(err, zq.ErrTimeout) != (want > 0) {
				t.Errorf("%s: %v after %v", kind, err, time.Since(start))
			}
		}
		if err := must(t, zq.Unlimited)(zq.HandlerFunc(func(ctx context.Context, _ *zq.Delivery) error {
			if _, ok := ctx.Deadline(); ok {
				t.Error("a deadline without a limit")
			}
			return nil
		})).Handle(t.Context(), &zq.Delivery{}); err != nil {
			t.Error(err)
		}
	})
}

// FAULTS B29, and all faults at once.
func TestLimitsAreChecked(t *testing.T) {
	t.Parallel()
	for d, good := range map[time.Duration]bool{
		0: false, 1: false, 999 * time.Microsecond: false, time.Millisecond: true, -1: true, -2: false, zq.MaxDelay: true,
		zq.MaxDelay + 1: false, math.MinInt64: false, math.MaxInt64: false,
	} {
		_, one := timeout.New(d)
		_, two := timeout.New(time.Second, timeout.ForKind("k", d))
		for _, err := range []error{one, two} {
			if good != (err == nil) || !good && !errors.Is(err, zq.ErrInvalid) {
				t.Errorf("%v: %v", d, err)
			}
		}
	}
	_, err := timeout.New(0, nil, timeout.ForKind("", 0), timeout.ForKind("a", 1), timeout.ForKind("a", time.Second),
		timeout.ForKind(strings.Repeat("x", zq.MaxKind+1), time.Second))
	if n := strings.Count(fmt.Sprint(err), "want "); n != 6 {
		t.Errorf("%d faults are listed, want 6: %v", n, err)
	}
}

// FAULTS B51: a run leaves nothing behind, however it ends. Not parallel: it counts what the whole process holds.
func TestNothingIsLeft(t *testing.T) {
	const runs = 100_000
	ctx, cancel := context.WithCancel(t.Context()) // what is not released would hang on it
	defer cancel()
	mw := must(t, time.Hour)
	ends := []zq.HandlerFunc{
		func(context.Context, *zq.Delivery) error { return nil },
		func(context.Context, *zq.Delivery) error { return errOwn },
		func(context.Context, *zq.Delivery) error { panic("told to") },
	}
	objects := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapObjects
	}
	run := func(h zq.Handler) {
		defer func() { _ = recover() }()
		_ = h.Handle(ctx, &zq.Delivery{})
	}
	goroutines, before := runtime.NumGoroutine(), objects()
	for i := range runs {
		run(mw(ends[i%len(ends)]))
	}
	if after := objects(); after > before+runs/10 {
		t.Errorf("%d objects before, %d after", before, after)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines before, %d after", goroutines, n)
	}
}
