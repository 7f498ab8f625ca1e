package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// story is what a span tells of how its run ended.
type story struct {
	Code   codes.Code
	Text   string
	Type   any // error.type
	Reason any // of a dead letter
	Event  string
	Attrs  map[string]any // of the event, but for times
}

type customError struct{}

func (*customError) Error() string { return "custom" }

type angryError struct{ error } //nolint:unused // the embedded error is never called, only promoted

func (angryError) Error() string   { panic("Error") }
func (angryError) Is(error) bool   { panic("Is") }
func (angryError) As(any) bool     { panic("As") }
func (angryError) Unwrap() []error { panic("Unwrap") }

// What becomes of a message is an event on its span; its status is Error if the handler failed or the lease is lost.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	const other = "_OTHER"
	errPlain := errors.New("plain")
	cases := []struct {
		name    string
		err     error
		cause   error
		attempt int
		want    story
	}{
		{name: "success", want: story{}},
		{name: "retry", err: errPlain, want: story{
			Code: codes.Error, Text: "plain", Type: other, Event: "messaging.zq.retry", Attrs: map[string]any{"error.type": other},
		}},
		{name: "retry after", err: zq.RetryAfter(1500*time.Millisecond, &customError{}), want: story{
			Code: codes.Error, Text: "retry after 1.5s: custom", Type: "*tracing_test.customError", Event: "messaging.zq.retry",
			Attrs: map[string]any{"error.type": "*tracing_test.customError", "messaging.zq.retry.delay_ms": int64(1500)},
		}},
		{name: "last attempt", err: errPlain, attempt: 3, want: story{
			Code: codes.Error, Text: "plain", Type: other, Reason: "attempts", Event: "messaging.zq.dead_letter",
			Attrs: map[string]any{"error.type": other, "messaging.zq.dlq.reason": "attempts"},
		}},
		{name: "dead", err: fmt.Errorf("because: %w", zq.Dead("bad_address", &customError{})), want: story{
			Code: codes.Error, Text: "because: dead: bad_address: custom", Type: "*tracing_test.customError", Reason: "bad_address",
			Event: "messaging.zq.dead_letter",
			Attrs: map[string]any{"error.type": "*tracing_test.customError", "messaging.zq.dlq.reason": "bad_address"},
		}},
		{name: "postpone", err: zq.Postpone(time.Second), attempt: 3, want: story{
			Event: "messaging.zq.postponed", Attrs: map[string]any{"messaging.zq.delay_ms": int64(1000)},
		}},
		{name: "step aside", err: zq.StepAside(time.Second), want: story{
			Event: "messaging.zq.postponed", Attrs: map[string]any{"messaging.zq.delay_ms": int64(1000)},
		}},
		{name: "shutdown", err: context.Canceled, cause: zq.ErrShutdown, attempt: 3, want: story{
			Event: "messaging.zq.released", Attrs: map[string]any{},
		}},
		{name: "own error at shutdown", err: errPlain, cause: zq.ErrShutdown, want: story{
			Code: codes.Error, Text: "plain", Type: other, Event: "messaging.zq.retry", Attrs: map[string]any{"error.type": other},
		}},
		{name: "lease lost", err: context.Canceled, cause: zq.ErrLeaseLost, want: story{
			Code: codes.Error, Text: "zq: lease lost", Type: "lease_lost", Event: "messaging.zq.lease_lost", Attrs: map[string]any{},
		}},
		{name: "success after the lease", cause: zq.ErrLeaseLost, want: story{
			Code: codes.Error, Text: "zq: lease lost", Type: "lease_lost", Event: "messaging.zq.lease_lost", Attrs: map[string]any{},
		}},
		{name: "timeout", err: context.Canceled, cause: zq.ErrTimeout, want: story{
			Code: codes.Error, Text: "zq: maximum run time exceeded: context canceled", Type: "timeout", Event: "messaging.zq.retry",
			Attrs: map[string]any{"error.type": "timeout"},
		}},
		{name: "recovered panic", err: &zq.PanicError{Value: "boom"}, want: story{
			Code: codes.Error, Text: "zq: handler panicked: boom", Type: "panic", Event: "messaging.zq.retry",
			Attrs: map[string]any{"error.type": "panic"},
		}},
		{name: "hostile error", err: angryError{}, want: story{
			Code: codes.Error, Text: "tracing_test.angryError, whose Error method panics", Type: other,
		}},
	}
	for _, c := range cases {
		k := newKit(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		d := &zq.Delivery{Queue: "orders", ID: "m", Attempt: max(c.attempt, 1), MaxAttempts: 3}
		_ = k.run(ctx, d, func(context.Context, *zq.Delivery) error {
			if c.cause != nil {
				cancel(c.cause)
			}
			return c.err
		})
		cancel(nil)
		s := k.one("process orders")
		all := attrs(s.Attributes())
		got := story{Code: s.Status().Code, Text: s.Status().Description, Type: all["error.type"], Reason: all["messaging.zq.dlq.reason"]}
		if len(s.Events()) > 0 {
			got.Event, got.Attrs = s.Events()[0].Name, attrs(s.Events()[0].Attributes)
			if at, there := got.Attrs["messaging.zq.retry.at"].(string); there {
				if when, err := time.Parse(time.RFC3339Nano, at); err != nil || time.Until(when) <= 0 || time.Until(when) > 1500*time.Millisecond {
					t.Errorf("%s: the retry is at %s", c.name, at)
				}
				delete(got.Attrs, "messaging.zq.retry.at")
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" || len(s.Events()) > 1 {
			t.Errorf("%s: %d events (-want +got):\n%s", c.name, len(s.Events()), diff)
		}
	}
}
