package logging_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"

	"github.com/zqueue/zqueue/middleware/logging"
	"github.com/zqueue/zqueue/zqfx/zq"
)

const (
	traceID = "0102030405060708090a0b0c0d0e0f10"
	spanID  = "0102030405060708"
)

// traced is a context with a span.
func traced(t *testing.T) context.Context {
	t.Helper()
	tid, err := trace.TraceIDFromHex(traceID)
	if err != nil {
		t.Fatal(err)
	}
	sid, err := trace.SpanIDFromHex(spanID)
	if err != nil {
		t.Fatal(err)
	}
	return trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: tid, SpanID: sid}))
}

// It is a slog handler by the rules.
func TestCorrelatedIsAHandler(t *testing.T) {
	t.Parallel()
	var j *journal // of the case at hand; they come one after the other
	slogtest.Run(t, func(*testing.T) slog.Handler {
		j = &journal{}
		return logging.Correlated(slog.NewJSONHandler(j, nil))
	}, func(t *testing.T) map[string]any {
		var line map[string]any
		if err := json.Unmarshal([]byte(j.text()), &line); err != nil {
			t.Fatal(err)
		}
		return line
	})
}

// The ids stand at the top level, also for a logger that was made from another.
func TestCorrelated(t *testing.T) {
	t.Parallel()
	type fields = map[string]any
	for name, c := range map[string]struct {
		log  func(ctx context.Context, l *slog.Logger)
		want fields
	}{
		"plain": {func(ctx context.Context, l *slog.Logger) { l.InfoContext(ctx, "m", "a", 1) }, fields{"a": 1.0}},
		"with":  {func(ctx context.Context, l *slog.Logger) { l.With("b", 2).InfoContext(ctx, "m", "a", 1) }, fields{"a": 1.0, "b": 2.0}},
		"group": {func(ctx context.Context, l *slog.Logger) { l.WithGroup("g").InfoContext(ctx, "m", "a", 1) }, fields{"g": fields{"a": 1.0}}},
		"deep": {func(ctx context.Context, l *slog.Logger) {
			l.With("b", 2).WithGroup("g").With("c", 3).WithGroup("h").With("d", 4).InfoContext(ctx, "m", "a", 1)
		}, fields{"b": 2.0, "g": fields{"c": 3.0, "h": fields{"d": 4.0, "a": 1.0}}}},
		"of none": {func(ctx context.Context, l *slog.Logger) { l.With().WithGroup("").InfoContext(ctx, "m") }, fields{}},
	} {
		var j journal
		logger := slog.New(logging.Correlated(logging.Correlated(j.handler()))) // twice: the ids once
		c.log(traced(t), logger)
		c.log(t.Context(), logger)
		without := fields{"level": "INFO", "msg": "m"}
		with := fields{"level": "INFO", "msg": "m", "trace_id": traceID, "span_id": spanID}
		for k, v := range c.want {
			without[k], with[k] = v, v
		}
		if diff := cmp.Diff([]map[string]any{with, without}, j.lines(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if n := strings.Count(j.text(), traceID); n != 1 {
			t.Errorf("%s: the trace's id is there %d times", name, n)
		}
	}
}

// Loggers made from one share nothing that the other could overwrite.
func TestCorrelatedSiblings(t *testing.T) {
	t.Parallel()
	var j journal
	base := slog.New(logging.Correlated(j.handler())).WithGroup("g").With("x", 0).With("y", 0)
	one, two := base.With("n", 1), base.With("n", 2)
	one.InfoContext(traced(t), "m")
	two.InfoContext(traced(t), "m")
	for i, line := range j.lines(t) {
		if g, _ := line["g"].(map[string]any); g["n"] != float64(i+1) {
			t.Errorf("line %d: %v", i, line)
		}
	}
}

// A record that goes to several handlers, as in a fan-out, is not written into.
func TestCorrelatedSharesTheRecord(t *testing.T) {
	t.Parallel()
	var j journal
	r := slog.NewRecord(time.Time{}, slog.LevelInfo, "m", 0)
	for i := range 8 { // more than fit into the record itself
		r.AddAttrs(slog.Int("a"+strconv.Itoa(i), i))
	}
	for range 2 {
		if err := logging.Correlated(j.handler()).Handle(traced(t), r); err != nil {
			t.Fatal(err)
		}
	}
	if lines := j.lines(t); len(lines) != 2 || !cmp.Equal(lines[0], lines[1]) {
		t.Errorf("%v", lines)
	}
}

func TestCorrelatedAsksEnabled(t *testing.T) {
	t.Parallel()
	var j journal
	h := logging.Correlated(slog.NewJSONHandler(&j, &slog.HandlerOptions{Level: slog.LevelWarn}))
	for _, h := range []slog.Handler{h, h.WithGroup("g"), h.WithAttrs([]slog.Attr{slog.Int("a", 1)})} {
		if h.Enabled(t.Context(), slog.LevelInfo) || !h.Enabled(t.Context(), slog.LevelWarn) {
			t.Error("the level of the handler within does not count")
		}
	}
}

// The line of a run, and what the handler logs in it, find the span; the handler's lines tell the message.
func TestFrom(t *testing.T) {
	t.Parallel()
	var j journal
	mw := must(t, &j, logging.Logger(slog.New(logging.Correlated(j.handler()))), logging.Key())
	err := mw(zq.HandlerFunc(func(ctx context.Context, _ *zq.Delivery) error {
		if logging.From(ctx) != logging.From(context.WithoutCancel(ctx)) {
			t.Error("another logger each time")
		}
		logging.From(ctx).InfoContext(ctx, "within", "n", 1)
		return nil
	})).Handle(traced(t), &zq.Delivery{Queue: "q", Kind: "k", ID: "a", Key: "key", Attempt: 2, MaxAttempts: 3})
	if err != nil {
		t.Fatal(err)
	}
	lines := j.lines(t)
	want := map[string]any{
		"level": "INFO", "msg": "within", "queue": "q", "kind": "k", "message_id": "a", "key": "key", "attempt": 2.0, "max_attempts": 3.0,
		"n": 1.0, "trace_id": traceID, "span_id": spanID,
	}
	if len(lines) != 2 || lines[1]["trace_id"] != traceID || lines[1]["span_id"] != spanID {
		t.Fatalf("%v", lines)
	}
	if diff := cmp.Diff(want, lines[0]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if logging.From(t.Context()) == nil {
		t.Error("no logger outside a run")
	}
}
