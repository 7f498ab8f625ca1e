package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zqueue/zqueue/examples/quickstart/internal/events"
	"github.com/zqueue/zqueue/examples/quickstart/internal/report"
	"github.com/zqueue/zqueue/zqfx/zq"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	good := report.Summary{Read: 9, Malformed: 2, Duplicates: 1, Accepted: 6, Processed: 5, Retried: 2, Dead: 1}
	tests := []struct {
		name string
		set  func(*ending)
		want int
	}{
		{"malformed lines, duplicates and dead letters are no fault", func(*ending) {}, statusGood},
		{"dead letters that are left", func(e *ending) { e.depth.Dead = 1 }, statusGood},
		{"lost", func(e *ending) { e.summary.Lost = 1 }, statusBad},
		{"doubled", func(e *ending) { e.summary.Doubled = 1 }, statusBad},
		{"out of order", func(e *ending) { e.summary.OutOfOrder = 1 }, statusBad},
		{"refused", func(e *ending) { e.summary.Refused = 1 }, statusBad},
		{"the queue disagrees with itself", func(e *ending) { e.problems = []string{"a message is nowhere"} }, statusBad},
		{"not all was run", func(e *ending) { e.depth.Pending = 1 }, statusBad},
		{"some is still running", func(e *ending) { e.depth.Running = 1 }, statusBad},
		{"interrupted", func(e *ending) { e.interrupted, e.summary.Lost, e.depth.Pending = true, 3, 3 }, statusInterrupted},
		{"interrupted and doubled", func(e *ending) { e.interrupted, e.summary.Doubled = true, 1 }, statusBad},
		{"interrupted and inconsistent", func(e *ending) { e.interrupted, e.problems = true, []string{"x"} }, statusBad},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := ending{summary: good}
			tt.set(&e)
			if have := e.status(); have != tt.want {
				t.Errorf("have %d, want %d", have, tt.want)
			}
		})
	}
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing.jsonl")
	tests := []struct {
		name   string
		args   []string
		status int
		log    string
	}{
		{"help", []string{"-h"}, statusGood, "Usage: quickstart"},
		{"unknown flag", []string{"-fast"}, statusUsage, "flag provided but not defined: -fast"},
		{"a file without its flag", []string{"orders.jsonl"}, statusUsage, `what is "orders.jsonl"?`},
		{"no URL", []string{"-redis", "localhost"}, statusUsage, "-redis is no URL"},
		{"wrong scheme", []string{"-redis", "http://:s3cret@localhost"}, statusUsage, "-redis is no URL"},
		{"wrong port", []string{"-redis", "redis://:s3cret@localhost:s3cret"}, statusUsage, "-redis is no URL"},
		{"no queue name", []string{"-queue", "a/b"}, statusUsage, `queue is "a/b"`},
		{"no file", []string{"-file", missing}, statusBad, "missing.jsonl"},
		{"a folder", []string{"-file", t.TempDir()}, statusBad, "read line 1"},
		{"no redis", []string{"-redis", "redis://:s3cret@127.0.0.1:1"}, statusBad, "connection refused"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out, log bytes.Buffer
			if have := run(tt.args, strings.NewReader(""), &out, &log); have != tt.status {
				t.Errorf("exit status %d, want %d", have, tt.status)
			}
			if !strings.Contains(log.String(), tt.log) {
				t.Errorf("have %q, want %q", log.String(), tt.log)
			}
			if strings.Contains(out.String()+log.String(), "s3cret") {
				t.Errorf("the password shows: %s%s", &out, &log)
			}
		})
	}
}

func TestHandler(t *testing.T) {
	t.Parallel()
	euros, unknown := events.Money{Minor: 1, Currency: "EUR"}, events.Money{Minor: 1, Currency: "XXX"}
	tests := []struct {
		name    string
		event   events.Event
		attempt int
		want    string         // in the error; empty for none
		outcome report.Summary // its processed and dead
	}{
		{"booked", events.Event{Amount: euros}, 1, "", report.Summary{Processed: 1}},
		{"timed out", events.Event{Amount: euros, GatewayTimeouts: 2}, 2, "timed out", report.Summary{}},
		{"booked in the end", events.Event{Amount: euros, GatewayTimeouts: 2}, 3, "", report.Summary{Processed: 1}},
		{"last attempt", events.Event{Amount: euros, GatewayTimeouts: 99}, maxAttempts, "timed out", report.Summary{Dead: 1}},
		{"unknown currency", events.Event{Amount: unknown}, 1, "no exchange rate", report.Summary{Dead: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tally, outcomes := report.New(nil), 0
			s := newShop(tally, func() { outcomes++ })
			err := s.handle(context.Background(), &zq.Delivery{Attempt: tt.attempt}, tt.event)
			if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("have %v, want %q", err, tt.want)
			}
			sum := tally.Summary()
			if sum.Processed != tt.outcome.Processed || sum.Dead != tt.outcome.Dead || outcomes != sum.Processed+sum.Dead {
				t.Errorf("%d processed, %d dead, %d told", sum.Processed, sum.Dead, outcomes)
			}
		})
	}
	s := newShop(report.New(nil), func() {})
	s.addRate("XXX")
	if err := s.handle(t.Context(), &zq.Delivery{Attempt: 1}, events.Event{Amount: unknown}); err != nil {
		t.Errorf("with a rate: %v", err)
	}
}
