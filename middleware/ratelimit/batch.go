package ratelimit

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Bounds of one step of a batch.
const (
	stepMost    = 500
	callTimeout = 10 * time.Second
)

type call struct{ name, id string }

type answer struct {
	code int64
	wait time.Duration
	err  error
}

// batch sends concurrent calls together: whoever comes while a step is under way joins the next one. Alone, a call
// goes out at once. Its one goroutine lives only while calls wait, and a step is bounded by callTimeout and the
// client's own timeouts.
type batch struct {
	send func(context.Context, []call) []answer

	mu      sync.Mutex
	waiting []*ticket
	flying  bool
}

// ticket is one call. taken is guarded by the batch's mutex; answer is written before done is closed.
type ticket struct {
	call   call
	taken  bool
	answer answer
	done   chan struct{}
}

// join sends c with whatever else is waiting. When ctx ends first, c may be sent all the same.
func (b *batch) join(ctx context.Context, c call) answer {
	if ctx.Err() != nil {
		return answer{err: context.Cause(ctx)}
	}
	t := &ticket{call: c, done: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, t)
	if !b.flying {
		b.flying = true
		go b.fly() //nolint:contextcheck // a step belongs to several callers, and must not end with one of them
	}
	b.mu.Unlock()
	select {
	case <-t.done:
		return t.answer
	case <-ctx.Done():
		b.abandon(t)
		return answer{err: context.Cause(ctx)}
	}
}

// abandon takes a call back whose caller waits no longer, unless it is on its way.
func (b *batch) abandon(t *ticket) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.waiting {
		if b.waiting[i] == t && !t.taken {
			b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
			return
		}
	}
}

// fly sends step after step until nobody waits.
func (b *batch) fly() {
	for {
		step := b.take()
		if len(step) == 0 {
			return
		}
		calls := make([]call, len(step))
		for i, t := range step {
			calls[i] = t.call
		}
		answers := b.guarded(calls)
		for i, t := range step {
			t.answer = answers[i]
			close(t.done)
		}
	}
}

// guarded keeps a client that panics from taking the process with it, or a caller that waits.
func (b *batch) guarded(calls []call) (answers []answer) {
	defer func() {
		if v := recover(); v != nil {
			answers = make([]answer, len(calls))
			for i := range answers {
				answers[i].err = fmt.Errorf("ratelimit: the client panicked: %v", v)
			}
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	return b.send(ctx, calls)
}

// take takes the next step, or ends the flight.
func (b *batch) take() []*ticket {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.waiting), stepMost)
	step := b.waiting[:n:n]
	for _, t := range step {
		t.taken = true
	}
	if b.waiting = b.waiting[n:]; len(b.waiting) == 0 {
		b.waiting = nil
	}
	b.flying = n > 0
	return step
}
