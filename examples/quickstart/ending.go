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
	case unfinished(e.depth) > 0:
		return statusBad
	}
	return statusGood
}

// table prints the numbers, before any replay.
func (s *story) table() error {
	sum := s.tally.Summary()
	for _, text := range s.malformed {
		fmt.Fprintln(s.out, "no event:", text)
	}
	if err := sum.Table(s.out); err != nil {
		return err
	}
	if sum.Accepted == 0 && sum.Duplicates > 0 {
		fmt.Fprintf(s.out, "The queue knew all of them from an earlier run: an id is remembered for %s after its event was "+
			"processed. Another -queue starts afresh.\n", zq.DefaultDedupeWindow)
	}
	return nil
}

// end lets the queue check itself and says the last word.
func (s *story) end(ctx context.Context, interrupted bool) (int, error) {
	verified, err := s.inspector.Verify(ctx, 0)
	if err != nil {
		return statusBad, err
	}
	depth, err := s.inspector.Depth(ctx)
	if err != nil {
		return statusBad, err
	}
	e := ending{summary: s.tally.Summary(), problems: verified.Problems, depth: depth, interrupted: interrupted}
	s.lastWord(&e)
	return e.status(), nil
}

// lastWord says in a sentence or two what the exit status says in a number.
func (s *story) lastWord(e *ending) {
	sum, left := &e.summary, unfinished(e.depth)
	for _, problem := range e.problems {
		fmt.Fprintf(s.out, "! queue: %s\n", problem)
	}
	switch status := e.status(); {
	case status == statusBad:
		for _, finding := range sum.Findings {
			fmt.Fprintf(s.out, "! %s\n", finding)
		}
		fmt.Fprintf(s.out, "FAILED: %d out of order, %d lost, %d doubled, %d refused; queue %s: %d problems, %d events left\n",
			sum.OutOfOrder, sum.Lost, sum.Doubled, sum.Refused, s.queue, len(e.problems), left)
	case status == statusInterrupted && s.server.embedded:
		fmt.Fprintf(s.out, "interrupted: %d events processed; %d more are lost with the embedded Redis\n", sum.Processed, left)
	case status == statusInterrupted:
		fmt.Fprintf(s.out, "interrupted: %d events processed, %d wait in queue %s; the same command goes on with them\n",
			sum.Processed, left, s.queue)
	case e.depth.Dead > 0:
		fmt.Fprintf(s.out, "queue %s verifies clean; %d dead letters are left in it\n", s.queue, e.depth.Dead)
	default:
		fmt.Fprintf(s.out, "queue %s verifies clean and is empty\n", s.queue)
	}
}
