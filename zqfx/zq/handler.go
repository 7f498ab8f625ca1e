package zq

import "context"

// Handler does the work of one message. It may run more than once for a message, on any consumer: make it
// safe to repeat, or attach its effects to the ack with Delivery.Effect. It must be safe for concurrent use.
//
// What it returns decides: nil acks; an error is tried again by the retry policy, up to MaxAttempts;
// RetryAfter, Postpone and Dead say it in their own words. Its context ends with a cause: ErrShutdown,
// ErrLeaseLost, ErrTimeout or ErrCancelled.
type Handler interface {
	Handle(ctx context.Context, d *Delivery) error
}

// HandlerFunc makes a function a Handler.
type HandlerFunc func(ctx context.Context, d *Delivery) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, d *Delivery) error { return f(ctx, d) }

// Middleware wraps a handler.
type Middleware func(next Handler) Handler

// Chain is a list of middleware; the first is the outermost.
type Chain []Middleware

// Then wraps h in the chain.
func (c Chain) Then(h Handler) Handler {
	for i := len(c) - 1; i >= 0; i-- {
		h = c[i](h)
	}
	return h
}
