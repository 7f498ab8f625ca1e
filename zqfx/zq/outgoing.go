package zq

import (
	"context"
	"fmt"
)

// Outgoing is one call of a producer on its way to Redis.
type Outgoing struct {
	// Queue is the producer's.
	Queue string
	// Messages may be changed by a middleware before it calls the next. Their headers belong to the caller:
	// a middleware that adds one does so in a copy of the map. An empty ID is made up later; the result has it.
	Messages []Message
	// Batch tells EnqueueBatch from Enqueue, which has exactly one message.
	Batch bool

	allOrNone bool
}

// SendFunc enqueues messages and answers for each in its place. Of an Enqueue the one result has the error of
// the call as well.
type SendFunc func(ctx context.Context, o *Outgoing) ([]Result, error)

// SendMiddleware wraps what a producer does: to add a header, to trace, to count. It must be safe for
// concurrent use.
type SendMiddleware func(next SendFunc) SendFunc

// WithSendMiddleware wraps each call of the producer; the first is the outermost. Given several times, later
// ones are further in.
func WithSendMiddleware(mw ...SendMiddleware) ProducerOption {
	return producerOption(func(c *producerConfig) { c.middleware = append(c.middleware, mw...) })
}

// chained wraps the innermost step; nil when there is nothing to wrap, so that plain producers pay nothing.
func chained(mw []SendMiddleware, last SendFunc) SendFunc {
	if len(mw) == 0 {
		return nil
	}
	for i := len(mw) - 1; i >= 0; i-- {
		last = mw[i](last)
	}
	return last
}

// sendOne takes a single message through the middleware.
func (p *Producer) sendOne(ctx context.Context, m Message) (Receipt, error) {
	results, err := p.wrapped(ctx, &Outgoing{Queue: p.queue, Messages: []Message{m}})
	if len(results) == 1 {
		return results[0].Receipt, err
	}
	if err == nil {
		err = invalid("send middleware", "silent about the message", "one result for each message")
	}
	return Receipt{}, err
}

// lastSend is what the innermost middleware calls.
func (p *Producer) lastSend(ctx context.Context, o *Outgoing) ([]Result, error) {
	switch {
	case len(o.Messages) > MaxBatch:
		return nil, invalid("batch", len(o.Messages), fmt.Sprintf("at most %d messages", MaxBatch))
	case o.Batch || len(o.Messages) != 1:
		return p.enqueueBatch(ctx, o.Messages, batchConfig{allOrNone: o.allOrNone})
	}
	r, err := p.enqueue(ctx, o.Messages[0])
	return []Result{{Receipt: r, Err: err}}, err
}
