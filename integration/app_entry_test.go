package integration_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// What an entry of the application's history tells.
const (
	sawStart    = "start"    // the first thing that a run does
	sawPaid     = "paid"     // the last things that it does, by what it will return
	sawFailed   = "failed"   // it runs again
	sawDead     = "dead"     // it does not
	sawReleased = "released" // a shutdown cut it off
	sawMarked   = "marked"   // the idempotency store has it as done
	sawSkipped  = "skipped"  // no run, for the store had it as done
	sawSpan     = "span"     // a process span has ended
	sawConsumed = "consumed" // what the metrics counted in the process's life
)

// runEnds are the entries of which each run writes one as its last.
var runEnds = []string{sawPaid, sawFailed, sawDead, sawReleased}

// entry is one line of the history that the application's processes write.
type entry struct {
	At      time.Time `json:"at"`
	Saw     string    `json:"saw"`
	Worker  string    `json:"worker"`
	ID      string    `json:"id,omitempty"`
	Key     string    `json:"key,omitempty"`
	Order   int       `json:"order"`
	Attempt int       `json:"attempt,omitempty"`
	// Trace and Span are the run's as its handler found them, or the ended span's own.
	Trace string `json:"trace,omitempty"`
	Span  string `json:"span,omitempty"`
	// The rest is what an ended span says; Count is for sawConsumed.
	Failed  bool   `json:"failed,omitempty"`
	Parent  bool   `json:"parent,omitempty"`
	Outcome string `json:"outcome,omitempty"`
	From    string `json:"from,omitempty"`   // the span that it links to as its creation
	Before  string `json:"before,omitempty"` // and as the run before
	Count   int64  `json:"count,omitempty"`
}

const entryPrefix = "app.entry "

// diary writes entries to a process's stdout, each at once and in one piece, so that a kill loses none.
type diary struct{ worker string }

func (y *diary) write(e entry) {
	e.At, e.Worker = time.Now(), y.worker
	b, err := json.Marshal(e)
	if err != nil {
		panic(err) // no entry has what JSON cannot say
	}
	y.say(entryPrefix + string(b))
}

func (y *diary) say(line string) {
	_, _ = os.Stdout.WriteString(line + "\n") // the parent may be gone
}

// run is a run as its handler sees it.
func (y *diary) run(ctx context.Context, d *zq.Delivery, o order) entry {
	sc := trace.SpanContextFromContext(ctx)
	return entry{
		ID: d.ID, Key: d.Key, Order: o.Number, Attempt: d.Attempt, Trace: sc.TraceID().String(), Span: sc.SpanID().String(),
	}
}

// outcome is for idempotency.OnOutcome.
func (y *diary) outcome(ctx context.Context, d *zq.Delivery, o idempotency.Outcome, r idempotency.Record) {
	v, err := orderPlaced.Decode(d)
	if err != nil {
		panic(err) // the handler has run
	}
	e := y.run(ctx, d, v)
	switch {
	case o == idempotency.Ran && r.State == idempotency.StateDone:
		e.Saw = sawMarked
	case o == idempotency.Skipped:
		e.Saw = sawSkipped
	case r.State != idempotency.StateDone && (o == idempotency.Ran || o == idempotency.Unrecorded):
		return // a failed run, whose record nobody needs for long: a slow machine may miss the second that it has
	default: // nothing of the kind should happen here
		e.Saw = "idempotency: " + string(o)
	}
	y.write(e)
}

// ExportSpans writes the spans of runs. It is called as each one ends, not later.
func (y *diary) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	for _, s := range spans {
		if strings.HasPrefix(s.Name(), "process ") {
			y.write(spanEntry(s))
		}
	}
	return nil
}

// Shutdown does nothing: all is written.
func (y *diary) Shutdown(context.Context) error { return nil }

func spanEntry(s sdktrace.ReadOnlySpan) entry {
	e := entry{
		Saw: sawSpan, Trace: s.SpanContext().TraceID().String(), Span: s.SpanContext().SpanID().String(),
		Failed: s.Status().Code != 0, Parent: s.Parent().IsValid(),
	}
	for _, a := range s.Attributes() {
		switch a.Key {
		case "messaging.message.id":
			e.ID = a.Value.AsString()
		case "messaging.zq.attempt":
			e.Attempt = int(a.Value.AsInt64())
		case "messaging.zq.idempotency.outcome":
			e.Outcome = a.Value.AsString()
		}
	}
	for _, l := range s.Links() {
		span := l.SpanContext.SpanID().String()
		switch {
		case slices.Contains(l.Attributes, attribute.String("messaging.zq.link", "creation")):
			e.From = span
		case slices.Contains(l.Attributes, attribute.String("messaging.zq.link", "previous")):
			e.Before = span
		}
	}
	return e
}

// entriesIn reads the entries among a process's lines.
func entriesIn(lines []string) []entry {
	var all []entry
	for _, line := range lines {
		var e entry
		if text, is := strings.CutPrefix(line, entryPrefix); is && json.Unmarshal([]byte(text), &e) == nil {
			all = append(all, e)
		}
	}
	return all
}
