package main

import (
	"context"
	"fmt"

	"github.com/zqueue/zqueue/examples/quickstart/internal/report"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// ending is all that decides about the exit status.
type ending struct {
	summary     report.Summary
	problems    []string // that Verify found
	depth       zq.Depth
	interrupted bool
}

// status is bad if an event was lost, doubled, refused or out of order, or the queue does not agree with itself.
// Malformed lines, duplicates and dead letters are no fault of the run.
func (e *ending) status() int {
	s := e.summary
	if e.interrupted {
		s.Lost = 0 // what has no outcome yet is in the queue
	}
	switch {
	case s.ExitStatus() != 0 || len(e.problems) > 0:
		return statusBad
	case e.interrupted:
		return statusInterrupted
	case e.depth.Unfinished() > 0:
		return statusBad
	}
	return statusGood
}

// table prints the numbers, before any replay.
func (b *books) table() error {
	sum := b.tally.Summary()
	for _, text := range b.malformed {
		fmt.Fprintln(b.out, "no event:", text)
	}
	if err := sum.Table(b.out); err != nil {
		return err
	}
	b.trail.show(b.out)
	if sum.Accepted == 0 && sum.Duplicates > 0 {
		fmt.Fprintf(b.out, "The queue knew all of them from an earlier run: an id is remembered for %s after its event was "+
			"processed. Another -queue starts afresh.\n", zq.DefaultDedupeWindow)
	}
	return nil
}

// outcome is the exit status and what went wrong, once the books are closed.
func (b *books) outcome() (int, error) {
	if b.stage.Load() == stageFailed {
		return statusBad, b.err
	}
	return b.final, nil
}

// close lets the queue check itself and says the last word.
func (b *books) close(ctx context.Context) error {
	stage := b.stage.Load()
	if stage == stageNone || stage == stageFailed {
		return nil // the error says it all
	}
	verified, err := b.inspector.Verify(ctx, 0)
	if err != nil {
		return err
	}
	depth, err := b.inspector.Depth(ctx)
	if err != nil {
		return err
	}
	e := ending{summary: b.tally.Summary(), problems: verified.Problems, depth: depth, interrupted: stage == stageWork}
	b.lastWord(&e)
	b.final = e.status()
	return nil
}

// lastWord says in a sentence or two what the exit status says in a number.
func (b *books) lastWord(e *ending) {
	sum, left := &e.summary, e.depth.Unfinished()
	for _, problem := range e.problems {
		fmt.Fprintf(b.out, "! queue: %s\n", problem)
	}
	switch status := e.status(); {
	case status == statusBad:
		for _, finding := range sum.Findings {
			fmt.Fprintf(b.out, "! %s\n", finding)
		}
		fmt.Fprintf(b.out, "FAILED: %d out of order, %d lost, %d doubled, %d refused; queue %s: %d problems, %d events left\n",
			sum.OutOfOrder, sum.Lost, sum.Doubled, sum.Refused, b.queue, len(e.problems), left)
	case status == statusInterrupted && b.server.embedded:
		fmt.Fprintf(b.out, "interrupted: %d events processed; %d more are lost with the embedded Redis\n", sum.Processed, left)
	case status == statusInterrupted:
		fmt.Fprintf(b.out, "interrupted: %d events processed, %d wait in queue %s; the same command goes on with them\n",
			sum.Processed, left, b.queue)
	case e.depth.Dead > 0:
		fmt.Fprintf(b.out, "queue %s verifies clean; %d dead letters are left in it\n", b.queue, e.depth.Dead)
	default:
		fmt.Fprintf(b.out, "queue %s verifies clean and is empty\n", b.queue)
	}
}
