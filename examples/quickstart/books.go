package main

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/examples/quickstart/internal/events"
	"github.com/zqueue/zqueue/examples/quickstart/internal/progress"
	"github.com/zqueue/zqueue/examples/quickstart/internal/report"
	"github.com/zqueue/zqueue/middleware/deadletter"
	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/zqfx/zq"
)

const maxMalformed = 10 // that are shown

// books are told what becomes of each event, and judge in the end. Their methods are safe for concurrent use once
// they are open.
type books struct {
	queue    string
	out, log io.Writer

	tally     *report.Tally      // counts, and proves the order from the history
	bar       *progress.Progress // moves when a line has its outcome; from open on
	trail     trail
	malformed []string // the first of them

	inspector *zq.Inspector
	in        *input
	server    *server

	stage atomic.Int32 // of the story
	err   error        // why it failed
	final int          // exit status
}

// Stages of the story.
const (
	stageNone = iota // it could not begin
	stageWork
	stageDone
	stageFailed
)

func newBooks(queue string, out, log io.Writer) *books {
	return &books{queue: queue, out: out, log: log, tally: report.New(nil), final: statusBad}
}

// attach gives the books what they look at. The handler needs them, so they open before the first event is handled,
// and close when the handlers have drained.
func (b *books) attach(inspector *zq.Inspector, lc fx.Lifecycle, in *input, server *server) *books {
	b.inspector, b.in, b.server = inspector, in, server
	lc.Append(fx.StartStopHook(b.open, b.close))
	return b
}

// open looks whether an earlier run was stopped half way.
func (b *books) open(ctx context.Context) error {
	fmt.Fprintln(b.out, "redis:", b.server.name)
	fmt.Fprintln(b.out, "input:", b.in.name)
	depth, err := b.inspector.Depth(ctx)
	if err != nil {
		return err
	}
	left := int(depth.Unfinished())
	if left > 0 {
		fmt.Fprintf(b.out, "queue: %s, with %d events that an earlier run has left\n", b.queue, left)
	}
	total := b.in.lines
	if total > 0 {
		total += left
	}
	b.bar = progress.New(b.log, "events", total)
	return nil
}

// begin says that there is a story to judge.
func (b *books) begin() { b.stage.Store(stageWork) }

// finish says that the story has ended by itself.
func (b *books) finish(err error) {
	if err != nil {
		b.err = err
		b.stage.Store(stageFailed)
		return
	}
	b.stage.Store(stageDone)
}

// skip notes a line that is no event.
func (b *books) skip(bad *events.MalformedError) {
	b.tally.Malformed(bad.Line)
	b.bar.Add(1)
	if len(b.malformed) < maxMalformed {
		b.malformed = append(b.malformed, bad.Error())
	}
}

// answered notes what the queue says of one event. What it took is the handlers' business from now on.
func (b *books) answered(e events.Event, r zq.Result) {
	switch {
	case r.Err != nil:
		b.tally.Refused(e)
		fmt.Fprintln(b.log, "refused:", r.Err)
	case r.Duplicate:
		b.tally.Duplicate(e)
	default:
		return
	}
	b.bar.Add(1)
}

// done notes that the handler has booked an event.
func (b *books) done(e events.Event) {
	b.tally.Done(e)
	b.bar.Add(1)
}

// died is told by the chain of an event that will not run again: the shop said so, or it was the last attempt.
func (b *books) died(_ context.Context, d *zq.Delivery, l deadletter.Letter) {
	e, err := OrderEvent.Decode(d)
	if err != nil {
		return // somebody else's message; it is among the dead letters
	}
	b.tally.Dead(e, l.Reason)
	b.bar.Add(1)
}

// checked is told by the chain whether an event was let through to the handler.
func (b *books) checked(_ context.Context, d *zq.Delivery, o idempotency.Outcome, _ idempotency.Record) {
	if o != idempotency.Skipped {
		return
	}
	if e, err := OrderEvent.Decode(d); err == nil {
		b.tally.Skipped(e)
		b.bar.Add(1)
	}
}
