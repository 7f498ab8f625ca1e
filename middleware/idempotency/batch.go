package idempotency

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Bounds of one step of a batch. Its size is MaxBatch.
const (
	batchBytes  = 1 << 20
	callTimeout = 10 * time.Second
)

// batch group commits concurrent calls: whoever comes while a step is under way joins the next one. Alone, a call
// goes out at once. Its one goroutine lives only while calls wait, and a step is bounded by callTimeout.
type batch[Q interface{ weight() int }] struct {
	send func(context.Context, []Q) []Answer

	mu      sync.Mutex
	waiting []*ticket[Q]
	flying  bool
}

// ticket is one call. taken is guarded by the batch's mutex; answer is written before done is closed.
type ticket[Q any] struct {
	q      Q
	taken  bool
	answer Answer
	done   chan struct{}
}

// join sends q with whatever else is waiting. When ctx ends first, q may be sent all the same, and the answer's Err
// is the cause of ctx.
func (b *batch[Q]) join(ctx context.Context, q Q) Answer {
	if ctx.Err() != nil {
		return Answer{Err: context.Cause(ctx)}
	}
	t := &ticket[Q]{q: q, done: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, t)
	if !b.flying {
		b.flying = true
		go b.fly() // not with ctx: a step belongs to several callers, and must not end with one of them
	}
	b.mu.Unlock()
	select {
	case <-t.done:
		return t.answer
	case <-ctx.Done():
		b.abandon(t)
		return Answer{Err: context.Cause(ctx)}
	}
}

// abandon takes a call back whose caller waits no longer, unless it is on its way.
func (b *batch[Q]) abandon(t *ticket[Q]) {
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
func (b *batch[Q]) fly() {
	for {
		step := b.take()
		if len(step) == 0 {
			return
		}
		qs := make([]Q, len(step))
		for i, t := range step {
			qs[i] = t.q
		}
		answers := b.guarded(qs)
		for i, t := range step {
			t.answer = answers[i]
			close(t.done)
		}
	}
}

// guarded keeps a store that panics, or answers too little, from taking the process or a caller with it.
func (b *batch[Q]) guarded(qs []Q) (answers []Answer) {
	err := errors.New("idempotency: the store did not answer every entry")
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("idempotency: the store panicked: %v", v)
		}
		if len(answers) != len(qs) {
			answers = make([]Answer, len(qs))
			for i := range answers {
				answers[i].Err = err
			}
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	return b.send(ctx, qs)
}

// take takes the next step, or ends the flight.
func (b *batch[Q]) take() []*ticket[Q] {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, bytes := 0, 0
	for n < len(b.waiting) && n < MaxBatch {
		bytes += b.waiting[n].q.weight()
		if n > 0 && bytes > batchBytes {
			break
		}
		b.waiting[n].taken = true
		n++
	}
	step := b.waiting[:n:n]
	b.waiting = b.waiting[n:]
	if len(b.waiting) == 0 {
		b.waiting = nil
	}
	b.flying = n > 0
	return step
}
