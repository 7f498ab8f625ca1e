package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zqueue/zqueue/middleware/recovery"
	"github.com/zqueue/zqueue/middleware/retry"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// limit bounds every wait of these tests.
const limit = 20 * time.Second

var errOwn = errors.New("handler's own")

func TestMain(m *testing.M) { os.Exit(zqtest.Main(m)) }

// must makes the middleware.
func must(t *testing.T, opts ...recovery.Option) zq.Middleware {
	t.Helper()
	mw, err := recovery.New(opts...)
	if err != nil {
		t.Fatal(err)
	}
	return mw
}

// panicking is a handler that panics with v.
func panicking(v any) zq.Handler {
	return zq.HandlerFunc(func(context.Context, *zq.Delivery) error { panic(v) })
}

// rogueError panics wherever somebody looks into it.
type rogueError struct{}

func (rogueError) Error() string { panic("Error panics") }
func (rogueError) Is(error) bool { panic("Is panics") }

func TestPanicBecomesAnError(t *testing.T) {
	t.Parallel()
	var none map[string]int
	for name, h := range map[string]zq.Handler{
		"text":    panicking("told to"),
		"error":   panicking(errOwn),
		"nil":     panicking(nil),
		"rogue":   panicking(rogueError{}),
		"abort":   panicking(http()),
		"runtime": zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error { none[d.ID] = 1; return nil }),
	} {
		for mode, mw := range map[string]zq.Middleware{"again": must(t), "dead": must(t, recovery.AsDead("panic"))} {
			err := mw(h).Handle(t.Context(), &zq.Delivery{})
			p, ok := errors.AsType[*zq.PanicError](err)
			if !ok || !strings.Contains(string(p.Stack), "recovery_test.go") {
				t.Errorf("%s, %s: no panic with its stack: %v", name, mode, err)
				continue
			}
			if name == "rogue" {
				continue // to look further would panic
			}
			if name == "error" && !errors.Is(err, errOwn) || name == "nil" && !strings.Contains(err.Error(), "nil") {
				t.Errorf("%s, %s: %v", name, mode, err)
			}
			want := zq.Verdict{Action: zq.ActionRetry}
			if mode == "dead" {
				want = zq.Verdict{Action: zq.ActionDead, Reason: "panic"}
			}
			if got := zq.Explain(err); got != want {
				t.Errorf("%s, %s: %+v", name, mode, got)
			}
		}
	}
}

// http is a value like http.ErrAbortHandler, which means nothing special here.
func http() error { return fmt.Errorf("net/http: abort Handler") }

// What does not panic passes.
func TestReturnsPass(t *testing.T) {
	t.Parallel()
	for _, want := range []error{nil, errOwn, zq.Postpone(1)} {
		h := must(t, recovery.AsDead("r"))(zq.HandlerFunc(func(context.Context, *zq.Delivery) error { return want }))
		if got := h.Handle(t.Context(), &zq.Delivery{}); got != want { //nolint:errorlint // the very same error is meant
			t.Errorf("%v became %v", want, got)
		}
	}
}

// A verdict that was panicked with counts.
func TestVerdictInPanic(t *testing.T) {
	t.Parallel()
	if got := zq.Explain(must(t)(panicking(zq.Dead("r", nil))).Handle(t.Context(), &zq.Delivery{})); got.Reason != "r" {
		t.Errorf("%+v", got)
	}
}

// FAULTS B49: where recover cannot see a panic(nil), it is no success either. Not parallel: it sets the environment.
func TestPanicNilIsNoSuccess(t *testing.T) {
	t.Setenv("GODEBUG", "panicnil=1")
	err := must(t)(panicking(nil)).Handle(t.Context(), &zq.Delivery{})
	if _, ok := errors.AsType[*zq.PanicError](err); !ok {
		t.Errorf("%v", err)
	}
}

func TestGoexitPasses(t *testing.T) {
	t.Parallel()
	told, returned := false, false
	h := must(t, recovery.OnPanic(func(context.Context, *zq.Delivery, *zq.PanicError) { told = true }))(
		zq.HandlerFunc(func(context.Context, *zq.Delivery) error { runtime.Goexit(); return nil }))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = h.Handle(context.Background(), &zq.Delivery{})
		returned = true
	}()
	zqtest.Wait(t, done, limit)
	if told || returned {
		t.Errorf("told %t, returned %t", told, returned)
	}
}

// A panic because of a shutdown is no reason to bury the message.
func TestShutdownIsNoDeath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value any
		cause error
		want  zq.Action
	}{
		{context.Canceled, zq.ErrShutdown, zq.ActionRetry},
		{fmt.Errorf("get: %w", zq.ErrShutdown), zq.ErrShutdown, zq.ActionRetry},
		{context.Canceled, zq.ErrLeaseLost, zq.ActionRetry},
		{errOwn, zq.ErrShutdown, zq.ActionDead},
		{"text", zq.ErrShutdown, zq.ActionDead},
		{context.Canceled, zq.ErrTimeout, zq.ActionDead},
		{context.Canceled, nil, zq.ActionDead},
		{rogueError{}, zq.ErrShutdown, zq.ActionDead},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if c.cause != nil {
			cancel(c.cause)
		}
		err := must(t, recovery.AsDead("r"))(panicking(c.value)).Handle(ctx, &zq.Delivery{})
		if got := zq.Explain(err).Action; got != c.want {
			t.Errorf("%v by %v: %v", c.value, c.cause, got)
		}
		cancel(nil)
	}
}

// FAULTS B49: the hook is told of every panic, and may panic itself.
func TestOnPanic(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{"panic": "hook", "panic(nil)": nil, "rogue": rogueError{}} {
		var log strings.Builder
		var told []string
		mw := must(t, recovery.Logger(slog.New(slog.NewTextHandler(&log, nil))),
			recovery.OnPanic(func(_ context.Context, d *zq.Delivery, p *zq.PanicError) {
				told = append(told, fmt.Sprint(d.ID, p.Value))
				panic(value)
			}))
		for _, id := range []string{"a", "b"} {
			err := mw(panicking(errOwn)).Handle(t.Context(), &zq.Delivery{ID: id})
			if p, ok := errors.AsType[*zq.PanicError](err); !ok || !errors.Is(err, errOwn) || p.Value != errOwn { //nolint:errorlint // the very value
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := strings.Join(told, ","); got != "a"+errOwn.Error()+",b"+errOwn.Error() {
			t.Errorf("%s: told %q", name, got)
		}
		if n := strings.Count(log.String(), "OnPanic panicked"); n != 1 {
			t.Errorf("%s: %d lines, want 1: %s", name, n, &log)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for reason, good := range map[string]bool{"": false, "r": true, strings.Repeat("r", 64): true, strings.Repeat("r", 65): false} {
		if _, err := recovery.New(nil, recovery.AsDead(reason)); good != (err == nil) || !good && !errors.Is(err, zq.ErrInvalid) {
			t.Errorf("AsDead(%q): %v", reason, err)
		}
	}
}

// On a real server: retry decides on a panic as on any error, and the dead letter says what it was.
func TestOnRedis(t *testing.T) {
	t.Parallel()
	rdb, queue := zqtest.Shared(t).Client(), zqtest.Queue(t)
	p, err := zq.NewProducer(rdb, queue)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Enqueue(t.Context(), zq.Message{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	var delays []time.Duration
	again, err := retry.New(retry.MaxAttempts(2), retry.Backoff(retry.Curve{Initial: time.Millisecond, Max: time.Millisecond}),
		retry.OnRetry(func(_ context.Context, _ *zq.Delivery, dec retry.Decision) { delays = append(delays, dec.After) }))
	if err != nil {
		t.Fatal(err)
	}
	c, err := zq.NewConsumer(rdb, queue, zq.Chain{must(t), again, must(t)}.Then(panicking("told to")), zq.ConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	in, err := zq.NewInspector(rdb, queue)
	if err != nil {
		t.Fatal(err)
	}
	var l zq.DeadLetter
	zqtest.Eventually(t, limit, func() bool {
		l, err = in.DeadLetter(t.Context(), "a")
		return err == nil
	}, "the dead letter")
	if err := c.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	if l.Reason != zq.ReasonAttempts || l.Attempts != 2 || l.Error != "zq: handler panicked: told to" || len(delays) != 2 || delays[0] != time.Millisecond {
		t.Errorf("%+v; delays %v", l, delays)
	}
}
