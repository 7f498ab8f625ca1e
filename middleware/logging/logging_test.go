package logging_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/zqueue/zqueue/middleware/logging"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// Every field of every outcome.
func TestLine(t *testing.T) {
	t.Parallel()
	type fields = map[string]any
	const second = float64(time.Second)
	cases := map[string]struct {
		err, cause error
		attempt    int
		want       fields
	}{
		"ack":         {nil, nil, 1, fields{"level": "INFO", "outcome": "ack"}},
		"ack at end":  {nil, zq.ErrShutdown, 1, fields{"level": "INFO", "outcome": "ack"}},
		"plain error": {errOwn, nil, 1, fields{"level": "WARN", "outcome": "retry", "error": "handler's own"}},
		"retry after": {zq.RetryAfter(time.Second, errOwn), nil, 1,
			fields{"level": "WARN", "outcome": "retry", "delay": second, "error": "retry after 1s: handler's own"}},
		"postpone":  {zq.Postpone(time.Second), nil, 5, fields{"level": "DEBUG", "outcome": "postpone", "delay": second, "error": "postponed for 1s"}},
		"aside":     {zq.StepAside(time.Second), nil, 1, fields{"level": "DEBUG", "outcome": "postpone", "delay": second, "error": "postponed for 1s"}},
		"dead":      {zq.Dead("r", errOwn), nil, 1, fields{"level": "ERROR", "outcome": "dead", "reason": "r", "error": "dead: r: handler's own"}},
		"exhausted": {errOwn, nil, 5, fields{"level": "ERROR", "outcome": "dead", "reason": "attempts", "error": "handler's own"}},
		"exhausted, retry after": {zq.RetryAfter(time.Second, errOwn), nil, 5,
			fields{"level": "ERROR", "outcome": "dead", "reason": "attempts", "error": "retry after 1s: handler's own"}},
		"shutdown":             {context.Canceled, zq.ErrShutdown, 5, fields{"level": "INFO", "outcome": "release", "error": "context canceled"}},
		"shutdown, own":        {errOwn, zq.ErrShutdown, 5, fields{"level": "ERROR", "outcome": "dead", "reason": "attempts", "error": "handler's own"}},
		"lease lost":           {errOwn, zq.ErrLeaseLost, 5, fields{"level": "WARN", "outcome": "drop", "error": "handler's own"}},
		"lease lost, too late": {nil, zq.ErrLeaseLost, 1, fields{"level": "WARN", "outcome": "drop"}},
	}
	synctest.Test(t, func(t *testing.T) {
		for name, c := range cases {
			var j journal
			d := &zq.Delivery{Queue: "orders", Kind: "order.placed", ID: "o-1", Key: "customer-7", Attempt: c.attempt, MaxAttempts: 5}
			ctx, cancel := context.WithCancelCause(t.Context())
			out := must(t, &j)(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
				<-time.After(3 * time.Second)
				cancel(c.cause)
				d.ID, d.Kind, d.Attempt = "changed", "by the handler", 99
				return c.err
			})).Handle(ctx, d)
			if out != c.err { //nolint:errorlint // the very same error is meant
				t.Errorf("%s: %v became %v", name, c.err, out)
			}
			want := fields{
				"msg": "zq: run ended", "queue": "orders", "kind": "order.placed", "message_id": "o-1",
				"attempt": float64(c.attempt), "max_attempts": 5.0, "duration": 3 * second,
			}
			maps.Copy(want, c.want)
			if diff := cmp.Diff([]map[string]any{want}, j.lines(t)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	})
}

// What has no value has no field.
func TestLineOfLittle(t *testing.T) {
	t.Parallel()
	var j journal
	if err := must(t, &j, logging.Key())(returning(nil)).Handle(t.Context(), &zq.Delivery{Queue: "q", ID: "a"}); err != nil {
		t.Fatal(err)
	}
	line := j.lines(t)[0]
	delete(line, "duration")
	want := map[string]any{"level": "INFO", "msg": "zq: run ended", "queue": "q", "message_id": "a", "attempt": 0.0, "outcome": "ack"}
	if diff := cmp.Diff(want, line); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// What is secret is in no line, whatever becomes of the run and at any level; a plain member's id is its body.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	for _, plain := range []bool{false, true} {
		var j journal
		for name, h := range map[string]zq.Handler{
			"ack": returning(nil), "retry": returning(errOwn), "dead": returning(zq.Dead("r", errOwn)), "later": returning(zq.Postpone(1)),
			"logs": zq.HandlerFunc(func(ctx context.Context, _ *zq.Delivery) error {
				logging.From(ctx).InfoContext(ctx, "within")
				return nil
			}),
			"panics": zq.HandlerFunc(func(context.Context, *zq.Delivery) error { panic("told to") }),
		} {
			d := &zq.Delivery{
				Queue: "q", ID: "a", Kind: "k", Attempt: 1, MaxAttempts: 1, Key: secret + "-key", Body: []byte(secret), ContentType: secret,
				Headers: map[string]string{"authorization": secret, secret: "name"}, LastError: secret, Plain: plain,
			}
			if plain {
				d.ID = secret
			}
			func() {
				defer func() { _ = recover() }()
				_ = must(t, &j, logging.Level(zq.ActionAck, slog.LevelDebug-50))(h).Handle(t.Context(), d)
			}()
			if len(j.lines(t)) == 0 {
				t.Errorf("%s: nothing was logged", name)
			}
		}
		if strings.Contains(j.text(), secret) {
			t.Errorf("plain %t: logged a secret:\n%s", plain, j.text())
		}
	}
}

func TestKeyAndPlainIDsAreOptIn(t *testing.T) {
	t.Parallel()
	var j journal
	d := &zq.Delivery{Queue: "q", ID: "member", Key: "customer-7", Plain: true}
	for _, opts := range [][]logging.Option{nil, {logging.Key()}, {logging.PlainIDs()}} {
		if err := must(t, &j, opts...)(returning(nil)).Handle(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, line := range j.lines(t) {
		got = append(got, fmt.Sprint(line["key"], " ", line["message_id"]))
	}
	if diff := cmp.Diff([]string{"<nil> <nil>", "customer-7 <nil>", "<nil> member"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// rogueError panics wherever somebody looks into it.
type rogueError struct{}

func (rogueError) Error() string { panic("Error panics") }
func (rogueError) Is(error) bool { panic("Is panics") }
func (rogueError) As(any) bool   { panic("As panics") }

type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// An error may be as odd as it likes.
func TestOddErrors(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 1<<20)
	for name, c := range map[string]struct {
		err  error
		want func(text string) bool
	}{
		"rogue":     {rogueError{}, func(s string) bool { return strings.Contains(s, "rogueError") }},
		"typed nil": {(*nilError)(nil), func(s string) bool { return strings.Contains(s, "nilError") }},
		"empty":     {errors.New(""), func(s string) bool { return s == "" }},
		"huge": {errors.New(long), func(s string) bool {
			return len(s) <= logging.MaxError && len(s) > logging.MaxError-8 && strings.HasSuffix(s, "ä…") && utf8.ValidString(s)
		}},
		"at the limit": {errors.New(long[:logging.MaxError]), func(s string) bool { return s == long[:logging.MaxError] }},
		"not UTF-8":    {errors.New(strings.Repeat("\x80", 4000)), func(s string) bool { return len(s) > 500 }},
		"lines":        {errors.New("a\nlevel=ERROR b"), func(s string) bool { return s == "a\nlevel=ERROR b" }},
	} {
		var j journal
		if out := must(t, &j)(returning(c.err)).Handle(t.Context(), &zq.Delivery{Attempt: 1, MaxAttempts: 2}); out != c.err { //nolint:errorlint // the very same
			t.Errorf("%s became another", name)
		}
		lines := j.lines(t)
		if len(lines) != 1 || lines[0]["outcome"] != "retry" {
			t.Errorf("%s: %v", name, lines)
			continue
		}
		if text, _ := lines[0]["error"].(string); !c.want(text) {
			t.Errorf("%s: %.60q, %d bytes", name, text, len(text))
		}
	}
}

// A panic of the handler that somebody inside has recovered shows where it was.
func TestStackIsLogged(t *testing.T) {
	t.Parallel()
	var j journal
	err := fmt.Errorf("w: %w", &zq.PanicError{Value: "boom", Stack: []byte("main.go:7" + strings.Repeat("x", 1<<20))})
	_ = must(t, &j)(returning(err)).Handle(t.Context(), &zq.Delivery{})
	stack, _ := j.lines(t)[0]["stack"].(string)
	if !strings.HasPrefix(stack, "main.go:7") || len(stack) > logging.MaxStack {
		t.Errorf("%.20q, %d bytes", stack, len(stack))
	}
}

// A panic passes by, with its own value and stack, and has its line; so does runtime.Goexit.
func TestPanicPasses(t *testing.T) {
	t.Parallel()
	for _, last := range []bool{false, true} {
		var j journal
		d := &zq.Delivery{Attempt: 1, MaxAttempts: 2}
		if last {
			d.Attempt = 2
		}
		func() {
			defer func() {
				if v := recover(); v != "told to" {
					t.Errorf("recovered %v", v)
				}
			}()
			_ = must(t, &j)(zq.HandlerFunc(func(context.Context, *zq.Delivery) error { panic("told to") })).Handle(t.Context(), d)
		}()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = must(t, &j)(zq.HandlerFunc(func(context.Context, *zq.Delivery) error { runtime.Goexit(); return nil })).Handle(context.Background(), d)
		}()
		zqtest.Wait(t, done, limit)
		for _, line := range j.lines(t) {
			want := map[bool]any{false: "retry", true: "dead"}[last]
			if line["outcome"] != want || line["error"] != "panicked, or ended its goroutine" {
				t.Errorf("%v", line)
			}
		}
		if n := len(j.lines(t)); n != 2 {
			t.Errorf("%d lines, want 2", n)
		}
	}
}

// loud is a slog handler that panics.
type loud struct{ slog.Handler }

func (loud) Handle(context.Context, slog.Record) error { panic("the handler of logs panics") }

// FAULTS B49: what becomes of the run does not depend on the log.
func TestPanickingHandlerOfLogs(t *testing.T) {
	t.Parallel()
	for _, want := range []error{nil, errOwn} {
		var j journal
		mw := must(t, &j, logging.Logger(slog.New(loud{j.handler()})))
		if got := mw(returning(want)).Handle(t.Context(), &zq.Delivery{}); got != want { //nolint:errorlint // the very same error is meant
			t.Errorf("%v became %v", want, got)
		}
		func() {
			defer func() {
				if v := recover(); v != "told to" {
					t.Errorf("recovered %v", v)
				}
			}()
			_ = mw(zq.HandlerFunc(func(context.Context, *zq.Delivery) error { panic("told to") })).Handle(t.Context(), &zq.Delivery{})
		}()
	}
}

func TestLevels(t *testing.T) {
	t.Parallel()
	var j journal
	mw := must(t, &j, logging.Level(zq.ActionAck, slog.LevelDebug), logging.Level(zq.ActionRetry, slog.LevelError+4))
	for _, err := range []error{nil, errOwn, zq.Dead("r", nil)} {
		_ = mw(returning(err)).Handle(t.Context(), &zq.Delivery{})
	}
	var got []any
	for _, line := range j.lines(t) {
		got = append(got, line["level"])
	}
	if diff := cmp.Diff([]any{"DEBUG", "ERROR+4", "ERROR"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	_, err := logging.New(nil, logging.Level("no", 0), logging.Level("nor", 0))
	if !errors.Is(err, zq.ErrInvalid) || !strings.Contains(err.Error(), `"no"`) || !strings.Contains(err.Error(), `"nor"`) {
		t.Errorf("%v", err)
	}
}
