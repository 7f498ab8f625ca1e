package metrics

import (
	"context"

	"github.com/zqueue/zqueue/middleware/internal/semconv"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// Observer counts what a consumer does. It belongs into the consumer's config.
func (m *Metrics) Observer() zq.Observer {
	return zq.Observer{Claimed: m.claimed, Settled: m.settled, Decided: m.decided, Lost: m.lost, Failed: m.failed}
}

// background is the context of what no caller waits for.
func background() context.Context { return context.Background() }

func (m *Metrics) claimed(c zq.Claimed) {
	m.inst.operation.Record(background(), c.Took.Seconds(),
		m.sets.of(labels{queue: c.Queue, kind: semconv.Receive, name: semconv.Claim}))
}

func (m *Metrics) settled(s zq.Settled) {
	m.inst.operation.Record(background(), s.Took.Seconds(), m.sets.of(labels{
		queue: s.Queue, kind: semconv.Settle, name: semconv.Settle, failure: semconv.ErrorType(s.Err),
	}))
}

func (m *Metrics) decided(d *zq.Delivery, dec zq.Decision) {
	ctx, failure := d.Context(), failureOf(dec) // with the run's span, for exemplars
	if dec.Ran > 0 {                            // it had a run: an unreadable message has none
		run := m.sets.of(labels{queue: d.Queue, name: semconv.Process, failure: failure})
		m.inst.consumed.Add(ctx, 1, run)
		m.inst.process.Record(ctx, dec.Ran.Seconds(), run)
	}
	m.inst.outcomes.Add(ctx, 1, m.sets.of(labels{queue: d.Queue, outcome: string(dec.Action), failure: failure}))
	switch dec.Action {
	case zq.ActionRetry:
		m.inst.retries.Add(ctx, 1, m.sets.of(labels{queue: d.Queue, failure: failure}))
	case zq.ActionDead:
		m.inst.dead.Add(ctx, 1, m.sets.of(labels{queue: d.Queue, reason: m.reasons.bounded(dec.Reason)}))
	case zq.ActionRelease:
		return // it has its first run still before it
	}
	m.waited(ctx, d)
}

// waited measures how long a message waited for its first run, by the server's clock alone. One that was put off has
// run before, if that run left a word (zq.Delivery.Leave), as tracing does.
func (m *Metrics) waited(ctx context.Context, d *zq.Delivery) {
	if d.Attempt != 1 || d.Replays > 0 || d.Trace != "" || d.DueAt.IsZero() || d.ClaimedAt.IsZero() {
		return
	}
	wait, at := max(d.ClaimedAt.Sub(d.DueAt), 0).Seconds(), m.sets.of(labels{queue: d.Queue})
	m.inst.wait.Record(ctx, wait, at)
	if d.DueAt.After(d.EnqueuedAt) {
		m.inst.lag.Record(ctx, wait, at)
	}
}

// failureOf is the class of a failure; there is none where nothing failed, though an error carried the word.
func failureOf(dec zq.Decision) string {
	switch dec.Action {
	case zq.ActionRetry, zq.ActionDead:
		if dec.Err == nil {
			return semconv.ErrorOther
		}
		return semconv.ErrorType(dec.Err)
	case zq.ActionDrop:
		return semconv.ErrorLeaseLost
	}
	return ""
}

func (m *Metrics) lost(l zq.Lost) {
	m.inst.lost.Add(background(), int64(l.Messages), m.sets.of(labels{queue: l.Queue}))
}

func (m *Metrics) failed(call string, err error) {
	m.inst.failed.Add(background(), 1,
		m.sets.of(labels{call: m.calls.bounded(call), failure: semconv.ErrorType(err)}))
}
