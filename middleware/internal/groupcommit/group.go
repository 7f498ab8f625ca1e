// Package groupcommit sends concurrent calls together.
package groupcommit

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Bounds of one step.
const (
	MaxCalls = 500
	MaxBytes = 1 << 20
	// Timeout bounds the context of a step; a Send that ignores it must have timeouts of its own.
	Timeout = 10 * time.Second
)

// Group sends calls in steps: whoever comes while a step is under way joins the next one. Alone, a call goes out at
// once. Its one goroutine lives only while calls wait. It is safe for concurrent use once its fields are set.
type Group[Q, A any] struct {
	// Name is in errors.
	Name string
	// Send makes the calls of a step, and gives an answer to each.
	Send func(context.Context, []Q) []A
	// Weigh is a call's size in bytes; nil where all calls are small.
	Weigh func(Q) int

	mu      sync.Mutex
	waiting []*ticket[Q, A]
	flying  bool
}

// ticket is one call. taken is guarded by the group's mutex; answer and err are written before done is closed.
type ticket[Q, A any] struct {
	q      Q
	taken  bool
	answer A
	err    error
	done   chan struct{}
}

// Join sends q with whatever else is waiting. When ctx ends first, q may be sent all the same, and the error is the
// cause of ctx; other errors are those of a Send that panicked or did not answer.
func (g *Group[Q, A]) Join(ctx context.Context, q Q) (answer A, err error) {
	if ctx.Err() != nil {
		return answer, context.Cause(ctx)
	}
	t := &ticket[Q, A]{q: q, done: make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, t)
	if !g.flying {
		g.flying = true
		go g.fly() //nolint:contextcheck // a step belongs to several callers, and must not end with one of them
	}
	g.mu.Unlock()
	select {
	case <-t.done:
		return t.answer, t.err
	case <-ctx.Done():
		g.abandon(t)
		return answer, context.Cause(ctx)
	}
}

// Step sends calls at once, together and with no others.
func (g *Group[Q, A]) Step(qs []Q) (answers []A, err error) {
	defer func() {
		if v := recover(); v != nil {
			answers, err = nil, fmt.Errorf("%s: a call panicked: %v", g.Name, v)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	answers = g.Send(ctx, qs)
	if len(answers) != len(qs) {
		return nil, fmt.Errorf("%s: %d answers to %d calls", g.Name, len(answers), len(qs))
	}
	return answers, nil
}

// Waiting is how many calls wait for the next step.
func (g *Group[Q, A]) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}

// abandon takes a call back whose caller waits no longer, unless it is on its way.
func (g *Group[Q, A]) abandon(t *ticket[Q, A]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.waiting {
		if g.waiting[i] == t && !t.taken {
			g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
			return
		}
	}
}

// fly sends step after step until nobody waits.
func (g *Group[Q, A]) fly() {
	for {
		step := g.take()
		if len(step) == 0 {
			return
		}
		qs := make([]Q, len(step))
		for i, t := range step {
			qs[i] = t.q
		}
		answers, err := g.Step(qs)
		for i, t := range step {
			if t.err = err; err == nil {
				t.answer = answers[i]
			}
			close(t.done)
		}
	}
}

// take takes the next step, or ends the flight.
func (g *Group[Q, A]) take() []*ticket[Q, A] {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, bytes := 0, 0
	for n < len(g.waiting) && n < MaxCalls {
		if g.Weigh != nil {
			bytes += g.Weigh(g.waiting[n].q)
		}
		if n > 0 && bytes > MaxBytes {
			break
		}
		g.waiting[n].taken = true
		n++
	}
	step := g.waiting[:n:n]
	if g.waiting = g.waiting[n:]; len(g.waiting) == 0 {
		g.waiting = nil
	}
	g.flying = n > 0
	return step
}
