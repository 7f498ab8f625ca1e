package main

import (
	"context"
	"errors"
	"time"

	"github.com/zqueue/zqueue/examples/quickstart/internal/events"
	"github.com/zqueue/zqueue/zqfx/zq"
)

const (
	batchSize    = 200
	batchTimeout = 10 * time.Second
)

// sender puts the events of the input into the queue.
type sender struct {
	producer *zq.Producer
	in       *input
	books    *books
}

func newSender(p *zq.Producer, in *input, b *books) *sender {
	return &sender{producer: p, in: in, books: b}
}

// send sends in the order of the file. It is the only one who sends, with one call at a time: two calls could
// overtake each other, and a customer's order is the order of enqueueing.
func (s *sender) send(ctx context.Context) error {
	defer s.books.tally.Sent()
	lines := s.in.read(ctx)
	var batch []events.Event
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case l, more := <-lines:
			if !more {
				return s.enqueue(ctx, batch)
			}
			if l.err == nil {
				batch = append(batch, l.event)
			} else if err := s.skip(l.err); err != nil {
				return err
			}
		}
		// Of a file much goes in one call; of a slow stream each event goes as it comes.
		if len(batch) == batchSize || len(lines) == 0 {
			if err := s.enqueue(ctx, batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
}

// enqueue sends a batch and looks at the answer for each of its events.
func (s *sender) enqueue(ctx context.Context, batch []events.Event) error {
	if len(batch) == 0 {
		return nil
	}
	msgs := make([]zq.Message, len(batch))
	for i, e := range batch {
		// The id makes a repeated line, or a repeated run, a duplicate. The key keeps a customer's events in order.
		m, err := OrderEvent.Message(e, zq.WithID(e.ID()), zq.WithKey(e.Customer))
		if err != nil {
			return err
		}
		msgs[i] = m
		s.books.tally.Enqueuing(e)
	}
	// An interrupt lets the call under way finish, so that its outcome is known.
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTimeout)
	defer cancel()
	results, err := s.producer.EnqueueBatch(call, msgs)
	if err != nil {
		return err
	}
	for i, r := range results {
		s.books.answered(batch[i], r)
	}
	return nil
}

// skip passes over a line that is no event; any other error ends the sending.
func (s *sender) skip(err error) error {
	var bad *events.MalformedError
	if !errors.As(err, &bad) {
		return err
	}
	s.books.skip(bad)
	return nil
}
