package main

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/zqueue/zqueue/middleware/retry"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// trail keeps what the chain has decided about the first event that had to be tried again. It is safe for
// concurrent use; the zero value is empty.
type trail struct {
	mu    sync.Mutex
	id    string
	lines []string
}

// note is told of each failed attempt.
func (t *trail) note(_ context.Context, d *zq.Delivery, decided retry.Decision) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.id == "" && decided.Action == zq.ActionRetry {
		t.id = d.ID
	}
	if t.id != d.ID {
		return
	}
	what := "again in " + decided.After.String()
	if decided.Action == zq.ActionDead {
		what = "dead letter, reason " + decided.Reason
	}
	t.lines = append(t.lines, fmt.Sprintf("  attempt %d of %d: %v; %s", d.Attempt, d.MaxAttempts, decided.Err, what))
}

func (t *trail) show(out io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.id == "" {
		return
	}
	fmt.Fprintf(out, "tried again %q, while its customer's later events waited\n", t.id)
	for _, line := range t.lines {
		fmt.Fprintln(out, line)
	}
}
