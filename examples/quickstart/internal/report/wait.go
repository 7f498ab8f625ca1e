package report

import "context"

// Wait blocks until the input is at its end and every accepted event has its outcome, or until ctx ends.
// It can be used again after Replayed.
func (t *Tally) Wait(ctx context.Context) error {
	t.mu.Lock()
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	idle := t.idle
	t.settle()
	t.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Waiting is the number of accepted events without an outcome.
func (t *Tally) Waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting
}

// reckon keeps the count of what is waiting.
func (t *Tally) reckon(en *entry) {
	open := !en.decided && (en.accepted > 0 || en.replays > 0)
	if open == en.open {
		return
	}
	en.open = open
	if open {
		t.waiting++
		return
	}
	t.waiting--
	t.settle()
}

func (t *Tally) settle() {
	if t.sent && t.waiting == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}
