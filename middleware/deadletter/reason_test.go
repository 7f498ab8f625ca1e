package deadletter_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/zqueue/zqueue/middleware/deadletter"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/effect"
)

// Each way to die has its reason, the one that is stored, and the hook knows as much as the dead letter.
func TestReasons(t *testing.T) {
	t.Parallel()
	order := zq.NewKind[struct{ Cents int }]("order")
	mux, err := zq.NewMux(order.Handle(func(context.Context, *zq.Delivery, struct{ Cents int }) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		h        zq.Handler
		m        zq.Message
		opts     []deadletter.Option
		reason   string
		text     string
		attempts int
	}{
		"handler":      {h: always(zq.Dead("fraud", errBoom)), reason: "fraud", text: "boom", attempts: 1},
		"no error":     {h: always(zq.Dead("fraud", nil)), reason: "fraud", attempts: 1},
		"wrapped":      {h: always(fmt.Errorf("pay: %w", zq.Dead("fraud", errBoom))), reason: "fraud", text: "pay: dead: fraud: boom", attempts: 1},
		"too old":      {h: always(zq.Dead(deadletter.ReasonAge, errBoom)), reason: "age", text: "boom", attempts: 1},
		"permanent":    {h: always(backoff.Permanent(errBoom)), reason: "permanent", text: "boom", attempts: 1},
		"plain":        {h: always(errBoom), reason: zq.ReasonAttempts, text: "boom", attempts: 3},
		"retry after":  {h: always(zq.RetryAfter(time.Millisecond, errBoom)), reason: zq.ReasonAttempts, text: "boom", attempts: 3},
		"decode":       {h: mux, m: zq.Message{Kind: "order", Body: []byte("{")}, reason: zq.ReasonDecode, text: "decode order: unexpected end of JSON input", attempts: 1},
		"no handler":   {h: mux, m: zq.Message{Kind: "other"}, reason: zq.ReasonNoHandler, text: `no handler for kind "other"`, attempts: 1},
		"by cause":     {h: always(&zq.PanicError{Value: 7}), opts: []deadletter.Option{deadletter.Classify(deadletter.ByCause)}, reason: "panic", text: "zq: handler panicked: 7", attempts: 3},
		"classified":   {h: always(zq.Dead("fraud", errBoom)), opts: []deadletter.Option{deadletter.Classify(shout)}, reason: "FRAUD", text: "boom", attempts: 1},
		"unclassified": {h: always(errBoom), opts: []deadletter.Option{deadletter.Classify(func(error, string) string { return "\n" })}, reason: zq.ReasonAttempts, text: "boom", attempts: 3},
		"bad class":    {h: always(errBoom), opts: []deadletter.Option{deadletter.Classify(func(error, string) string { panic("no") })}, reason: zq.ReasonAttempts, text: "boom", attempts: 3},
		"bad error":    {h: always(panickyError{}), reason: zq.ReasonAttempts, text: "deadletter_test.panickyError, whose Error method panics", attempts: 3},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTrial(t)
			x.start(x.guard(c.h, c.opts...))
			c.m.ID = "m"
			x.send(c.m)
			l := x.letter()
			x.drained()
			got, err := x.look.DeadLetter(t.Context(), "m")
			x.must(err)
			if got.Reason != c.reason || got.Error != c.text {
				t.Errorf("stored %q %q, want %q %q", got.Reason, got.Error, c.reason, c.text)
			}
			if l.Reason != got.Reason || l.Attempts != got.Attempts || l.Losses != 0 || l.Err == nil || l.To != "" || !l.Kept {
				t.Errorf("told %+v, stored %+v", l, got)
			}
			if l.Attempts != c.attempts {
				t.Errorf("%d attempts, want %d", l.Attempts, c.attempts)
			}
			x.noLetter()
		})
	}
}

func shout(_ error, reason string) string { return strings.ToUpper(reason) }

type panickyError struct{}

func (panickyError) Error() string { panic("no text") }

// What does not end a message passes as it came.
func TestPassesWhatGoesOn(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		err      error
		cause    error
		attempt  int
		attempts int
	}{
		"done":                        {nil, nil, 3, 3},
		"an attempt is left":          {errBoom, nil, 2, 3},
		"postponed":                   {zq.Postpone(time.Second), nil, 3, 3},
		"retry after, attempts left":  {zq.RetryAfter(time.Second, errBoom), nil, 2, 3},
		"by hand, no maximum":         {errBoom, nil, 3, 0},
		"shutdown":                    {context.Canceled, zq.ErrShutdown, 3, 3},
		"shutdown, wrapped":           {fmt.Errorf("get: %w", context.Canceled), zq.ErrShutdown, 3, 3},
		"shutdown, by its cause":      {fmt.Errorf("stop: %w", zq.ErrShutdown), zq.ErrShutdown, 3, 3},
		"shutdown, a permanent one":   {backoff.Permanent(context.Canceled), zq.ErrShutdown, 1, 3},
		"lease lost":                  {context.Canceled, zq.ErrLeaseLost, 3, 3},
		"lease lost, an error of its": {errBoom, zq.ErrLeaseLost, 3, 3},
		"lease lost, dead":            {zq.Dead("fraud", errBoom), zq.ErrLeaseLost, 1, 3},
		"cancelled":                   {context.Canceled, zq.ErrCancelled, 3, 3},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mw, err := deadletter.New(deadletter.OnDead(func(context.Context, *zq.Delivery, deadletter.Letter) {
				t.Error("the hook was called")
			}))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			if c.cause != nil {
				cancel(c.cause)
			}
			defer cancel(nil)
			got := mw(always(c.err)).Handle(ctx, &zq.Delivery{ID: "m", Attempt: c.attempt, MaxAttempts: c.attempts})
			if got != c.err { //nolint:errorlint // the very same value
				t.Errorf("got %v, want %v", got, c.err)
			}
		})
	}
}

// A handler's own error beats the shutdown; a run that was too long has the timeout in its story.
func TestOwnErrorBeatsContext(t *testing.T) {
	t.Parallel()
	mw, err := deadletter.New(deadletter.Classify(deadletter.ByCause))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ err, cause, want error }{
		"own error at shutdown": {errBoom, zq.ErrShutdown, errBoom},
		"too long":              {context.Canceled, zq.ErrTimeout, zq.ErrTimeout},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(c.cause)
		got := mw(always(c.err)).Handle(ctx, &zq.Delivery{ID: "m", Attempt: 3, MaxAttempts: 3})
		if v := zq.Explain(got); v.Action != zq.ActionDead || !errors.Is(got, c.want) {
			t.Errorf("%s: %v, %+v", name, got, v)
		}
		if want := map[bool]string{true: "timeout", false: "attempts"}[errors.Is(c.cause, zq.ErrTimeout)]; zq.Explain(got).Reason != want {
			t.Errorf("%s: reason %s, want %s", name, zq.Explain(got).Reason, want)
		}
	}
}

// FAULTS B15: a shutdown in the middle of the last attempt gives the message back, uncharged, and it runs elsewhere.
func TestShutdownIsNoDeath(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	x.send(zq.Message{ID: "m"})
	began := make(chan int, 10)
	deaf := x.start(x.guard(zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
		began <- d.Attempt
		<-ctx.Done()
		return ctx.Err()
	})), func(c *zq.ConsumerConfig) { c.MaxAttempts, c.DrainTime = 1, time.Millisecond })
	<-began
	x.must(deaf.Stop(context.Background()))
	x.noLetter()
	x.start(x.guard(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		began <- d.Attempt
		return nil
	})), func(c *zq.ConsumerConfig) { c.MaxAttempts = 1 })
	x.drained()
	if attempt := <-began; attempt != 1 {
		t.Errorf("it ran as attempt %d, want 1", attempt)
	}
	x.dead()
	x.noLetter()
}

// The hook gets what the run before has left.
func TestLetterHasTheTrace(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	x.start(x.guard(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		d.Leave(fmt.Sprint("run ", d.Attempt))
		return errBoom
	})))
	x.send(zq.Message{ID: "m"})
	if l := x.letter(); l.Trace != "run 2" {
		t.Errorf("trace %q", l.Trace)
	}
	x.drained()
}

// A panic in the hook, or its taking the delivery apart, changes no outcome.
func TestHookCannotChangeTheOutcome(t *testing.T) {
	t.Parallel()
	for name, hook := range map[string]func(context.Context, *zq.Delivery, deadletter.Letter){
		"panic":     func(context.Context, *zq.Delivery, deadletter.Letter) { panic("hook") },
		"panic nil": func(context.Context, *zq.Delivery, deadletter.Letter) { panic(nil) }, //nolint:govet // FAULTS B49
		"effect":    func(_ context.Context, d *zq.Delivery, _ deadletter.Letter) { _ = d.Effect(effect.Set("x", "1")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTrial(t)
			x.start(x.guard(always(zq.Dead("fraud", errBoom)), deadletter.OnDead(hook)))
			x.send(zq.Message{ID: "a"}, zq.Message{ID: "b"})
			x.drained()
			x.dead("a fraud", "b fraud")
		})
	}
}
