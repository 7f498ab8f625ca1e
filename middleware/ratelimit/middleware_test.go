package ratelimit_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zqueue/zqueue/middleware/ratelimit"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// limiterFunc is a limiter made of a function.
type limiterFunc func(ctx context.Context, name, id string) (time.Duration, error)

func (f limiterFunc) Reserve(ctx context.Context, name, id string) (time.Duration, error) {
	return f(ctx, name, id)
}

// script is a limiter that answers as it was told to, and writes down what it was asked.
type script struct {
	mu    sync.Mutex
	wait  time.Duration
	err   error
	asked []string
}

func (s *script) Reserve(_ context.Context, name, id string) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, name+" for "+id)
	return s.wait, s.err
}

func wrap(t *testing.T, l ratelimit.Limiter, h zq.HandlerFunc, opts ...ratelimit.Option) zq.Handler {
	t.Helper()
	mw, err := ratelimit.New(l, append([]ratelimit.Option{ratelimit.Logger(slog.New(slog.DiscardHandler))}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return mw(h)
}

func TestNamesOfRates(t *testing.T) {
	t.Parallel()
	keyed := &zq.Delivery{Queue: "q", ID: "a", Key: "k"}
	plain := &zq.Delivery{Queue: "q", ID: "b"}
	for name, c := range map[string]struct {
		opts []ratelimit.Option
		want []string
	}{
		"queue":   {nil, []string{"q for q\x00a", "q for q\x00b"}},
		"per key": {[]ratelimit.Option{ratelimit.PerKey()}, []string{"q/k for q\x00a", "q for q\x00b"}},
		"by": {[]ratelimit.Option{ratelimit.By(func(d *zq.Delivery) string { return d.Key })},
			[]string{"k for q\x00a"}}, // none for a message without a name
	} {
		var s script
		ran := 0
		h := wrap(t, &s, func(context.Context, *zq.Delivery) error {
			ran++
			return nil
		}, c.opts...)
		for _, d := range []*zq.Delivery{keyed, plain} {
			if err := h.Handle(t.Context(), d); err != nil {
				t.Error(err)
			}
		}
		if !slices.Equal(s.asked, c.want) || ran != 2 {
			t.Errorf("%s: asked %q, want %q; %d ran", name, s.asked, c.want, ran)
		}
	}
}

// What the limiter says is what becomes of the message: a wait is a postponement without a charge, and no run.
func TestWaitIsAPostponement(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	var s script
	h := wrap(t, &s, func(context.Context, *zq.Delivery) error { return boom })
	d := &zq.Delivery{Queue: "q", ID: "a"}
	if err := h.Handle(t.Context(), d); !errors.Is(err, boom) {
		t.Errorf("the handler's error became %v", err)
	}
	s.wait = 1234567 * time.Microsecond
	v := zq.Explain(h.Handle(t.Context(), d))
	if v.Action != zq.ActionPostpone || v.After != s.wait || v.Aside {
		t.Errorf("told to wait: %+v", v)
	}
}

// A function for names that panics costs that message a run, and no other anything.
func TestPanickingNameIsAFailedRun(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	var s script
	changes := 0
	h := wrap(t, &s, func(context.Context, *zq.Delivery) error { return nil },
		ratelimit.By(func(d *zq.Delivery) string {
			if d.ID == "bad" {
				panic(boom)
			}
			return d.Queue
		}), ratelimit.FailClosed(), ratelimit.OnLimiter(func(error) { changes++ }))
	for range 3 {
		err := h.Handle(t.Context(), &zq.Delivery{Queue: "q", ID: "bad"})
		caught, ok := errors.AsType[*zq.PanicError](err)
		if !ok || !errors.Is(err, boom) || len(caught.Stack) == 0 || zq.Explain(err).Action != zq.ActionRetry {
			t.Errorf("the panic became %v", err)
		}
		if err := h.Handle(t.Context(), &zq.Delivery{Queue: "q", ID: "good"}); err != nil {
			t.Error(err)
		}
	}
	if len(s.asked) != 3 || changes != 0 {
		t.Errorf("asked %q, told of %d changes", s.asked, changes)
	}
}

// A run that ends while the limiter is asked says nothing about the limiter: its cause is the error, and nobody is told.
func TestRunEndsWhileTheLimiterIsAsked(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 1)
	slow := limiterFunc(func(ctx context.Context, _, id string) (time.Duration, error) {
		if id == "q\x00good" {
			return 0, nil
		}
		asked <- struct{}{}
		<-ctx.Done()
		return 0, ctx.Err()
	})
	ran, changes := 0, 0
	h := wrap(t, slow, func(context.Context, *zq.Delivery) error {
		ran++
		return nil
	}, ratelimit.Timeout(time.Minute), ratelimit.OnLimiter(func(error) { changes++ }))
	ctx, end := context.WithCancelCause(t.Context())
	result := make(chan error, 1)
	go func() { result <- h.Handle(ctx, &zq.Delivery{Queue: "q", ID: "a"}) }()
	zqtest.Wait(t, asked, limit)
	end(zq.ErrShutdown)
	if err := zqtest.Wait(t, result, limit); !errors.Is(err, zq.ErrShutdown) {
		t.Errorf("ended with %v", err)
	}
	if err := h.Handle(t.Context(), &zq.Delivery{Queue: "q", ID: "good"}); err != nil {
		t.Error(err)
	}
	if ran != 1 || changes != 0 {
		t.Errorf("%d ran, told of %d changes", ran, changes)
	}
}

// A limiter that panics, or does not answer in time, is one out of reach.
func TestPanickingAndSlowLimiterIsOutOfReach(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for name, l := range map[string]limiterFunc{
		"panics": func(context.Context, string, string) (time.Duration, error) { panic("boom") },
		"hangs": func(ctx context.Context, _, _ string) (time.Duration, error) {
			<-ctx.Done()
			return 0, context.Cause(ctx)
		},
	} {
		for _, closed := range []bool{false, true} {
			var changes []error
			opts := []ratelimit.Option{
				ratelimit.Timeout(time.Millisecond), ratelimit.OnLimiter(func(err error) { changes = append(changes, err) }),
			}
			if closed {
				opts = append(opts, ratelimit.FailClosed())
			}
			ran := 0
			h := wrap(t, l, func(context.Context, *zq.Delivery) error {
				ran++
				return nil
			}, opts...)
			for range 3 {
				v := zq.Explain(h.Handle(ctx, &zq.Delivery{Queue: "q", ID: "a"}))
				if postponed := v.Action == zq.ActionPostpone; postponed != closed {
					t.Errorf("%s: %+v", name, v)
				}
			}
			if want := map[bool]int{false: 3}[closed]; ran != want {
				t.Errorf("%s: %d ran, want %d", name, ran, want)
			}
			if len(changes) != 1 || changes[0] == nil {
				t.Errorf("%s: told of %v", name, changes)
			}
		}
	}
}
