package logging

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// New makes the middleware. It lists all that is wrong with its options, and does no I/O. What it makes is safe for
// concurrent use and can wrap any number of handlers.
func New(opts ...Option) (zq.Middleware, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	return func(next zq.Handler) zq.Handler {
		return zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error { return c.run(ctx, d, next) })
	}, nil
}

// run logs from a deferred call that does not recover: whoever does, outside, sees the panic's own stack.
func (c *config) run(ctx context.Context, d *zq.Delivery, next zq.Handler) (err error) {
	told := c.message(d) // before the run: the delivery is the handler's to change
	r := run{attempt: d.Attempt, maxAttempts: d.MaxAttempts}
	start := time.Now()
	defer func() {
		r.err, r.cause = err, context.Cause(ctx)
		c.log(ctx, told, time.Since(start), r)
	}()
	err = next.Handle(with(ctx, c.logger, told), d)
	r.whole = true
	return err
}

// message are the fields that tell the message.
func (c *config) message(d *zq.Delivery) []slog.Attr {
	attrs := make([]slog.Attr, 0, 6)
	attrs = append(attrs, slog.String("queue", d.Queue))
	if d.Kind != "" {
		attrs = append(attrs, slog.String("kind", d.Kind))
	}
	if !d.Plain || c.plains {
		attrs = append(attrs, slog.String("message_id", d.ID))
	}
	if c.key && d.Key != "" {
		attrs = append(attrs, slog.String("key", d.Key))
	}
	attrs = append(attrs, slog.Int("attempt", d.Attempt))
	if d.MaxAttempts > 0 {
		attrs = append(attrs, slog.Int("max_attempts", d.MaxAttempts))
	}
	return attrs
}

// log writes the line. A slog handler that panics has no other place to say so, and the run is over and decided.
func (c *config) log(ctx context.Context, told []slog.Attr, took time.Duration, r run) {
	defer func() { _ = recover() }()
	o := r.outcome()
	level := c.levels[o.action]
	if !c.logger.Enabled(ctx, level) {
		return
	}
	attrs := slices.Concat(told, make([]slog.Attr, 0, 6))
	attrs = append(attrs, slog.Duration("duration", took), slog.String("outcome", string(o.action)))
	if o.asked {
		attrs = append(attrs, slog.Duration("delay", o.delay))
	}
	if o.reason != "" {
		attrs = append(attrs, slog.String("reason", o.reason))
	}
	if text := r.text(); text != "" {
		attrs = append(attrs, slog.String("error", text))
	}
	if stack := r.stack(); stack != "" {
		attrs = append(attrs, slog.String("stack", stack))
	}
	c.logger.LogAttrs(ctx, level, "zq: run ended", attrs...)
}
