package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zqueue/zqueue/examples/quickstart/internal/events"
	"github.com/zqueue/zqueue/examples/quickstart/internal/progress"
	"github.com/zqueue/zqueue/examples/quickstart/internal/report"
	"github.com/zqueue/zqueue/middleware"
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

// The handler and the chain around it decide together. What needs Redis is not in the chain of an embedded one.
func TestHandler(t *testing.T) {
	t.Parallel()
	euros, unknown := events.Money{Minor: 1, Currency: "EUR"}, events.Money{Minor: 1, Currency: "XXX"}
	tests := []struct {
		name    string
		event   events.Event
		attempt int
		want    string         // in the error; empty for none
		verdict zq.Verdict     // of the error
		outcome report.Summary // its processed and dead
	}{
		{"booked", events.Event{Amount: euros}, 1, "", zq.Verdict{Action: zq.ActionAck}, report.Summary{Processed: 1}},
		{
			"timed out", events.Event{Amount: euros, GatewayTimeouts: 2}, 2, "timed out",
			zq.Verdict{Action: zq.ActionRetry, After: retryDelay, Asked: true}, report.Summary{},
		},
		{
			"booked in the end", events.Event{Amount: euros, GatewayTimeouts: 2}, 3, "",
			zq.Verdict{Action: zq.ActionAck}, report.Summary{Processed: 1},
		},
		{
			"last attempt", events.Event{Amount: euros, GatewayTimeouts: 99}, maxAttempts, "timed out",
			zq.Verdict{Action: zq.ActionDead, Reason: zq.ReasonAttempts}, report.Summary{Dead: 1},
		},
		{
			"unknown currency", events.Event{Amount: unknown}, 1, "no exchange rate",
			zq.Verdict{Action: zq.ActionDead, Reason: unknownCurrency}, report.Summary{Dead: 1},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, told := openBooks()
			err := deliver(t, b, newRates(), tt.attempt, tt.event)
			if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("have %v, want %q", err, tt.want)
			}
			if have := zq.Explain(err); have != tt.verdict {
				t.Errorf("have %+v, want %+v", have, tt.verdict)
			}
			sum := b.tally.Summary()
			if outcomes := told(); sum.Processed != tt.outcome.Processed || sum.Dead != tt.outcome.Dead ||
				outcomes != sum.Processed+sum.Dead {
				t.Errorf("%d processed, %d dead, %d told", sum.Processed, sum.Dead, outcomes)
			}
		})
	}
	b, _ := openBooks()
	r := newRates()
	r.add("XXX")
	if err := deliver(t, b, r, 1, events.Event{Amount: unknown}); err != nil {
		t.Errorf("with a rate: %v", err)
	}
}

// openBooks gives books, and how many outcomes their progress has heard of.
func openBooks() (b *books, told func() int) {
	var lines strings.Builder
	b = newBooks("q", io.Discard, io.Discard)
	b.bar = progress.New(&lines, "events", 0)
	return b, func() int {
		b.bar.Finish()
		n := 0
		_, _ = fmt.Sscanf(lines.String(), "events: %d", &n) // nothing is written of none
		return n
	}
}

// deliver runs an attempt of an event through the chain and the handler.
func deliver(t *testing.T, b *books, r *rates, attempt int, e events.Event) error {
	t.Helper()
	stack, err := chain(options{}, b).Build(middleware.Env{Queue: "q", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	m, err := OrderEvent.Message(e)
	if err != nil {
		t.Fatal(err)
	}
	return stack.Chain.Then(OrderEvent.Handle(newShop(r, b).Handle)).Handle(context.Background(), &zq.Delivery{
		Kind: m.Kind, ContentType: m.ContentType, Body: m.Body, Attempt: attempt, MaxAttempts: maxAttempts,
	})
}
