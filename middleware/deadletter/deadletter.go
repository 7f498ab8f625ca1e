package deadletter

import (
	"context"
	"fmt"
	"hash/fnv"
	"sync/atomic"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// New makes the middleware. It lists all that is wrong with its options, as *zq.InvalidError, and does no I/O. The
// middleware is safe for concurrent use and may stand in the chains of several queues.
func New(opts ...Option) (zq.Middleware, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	k := &keeper{config: c}
	return func(next zq.Handler) zq.Handler {
		return zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error { return k.handle(ctx, d, next) })
	}, nil
}

// keeper is the middleware of one New.
type keeper struct {
	*config
	panicked atomic.Bool
}

func (k *keeper) handle(ctx context.Context, d *zq.Delivery, next zq.Handler) error {
	// As it came: that is what is sent on, and what the handler attaches to its ack must not happen with an ack that
	// is not its own.
	before := *d
	err := next.Handle(ctx, d)
	v, dies := judge(d, err, context.Cause(ctx))
	if !dies {
		return err
	}
	k.classify(&v)
	t := k.targetOf(d, v.reason)
	if t == nil {
		return k.bury(ctx, d, v, "")
	}
	failed := k.send(ctx, &before, t, v)
	switch {
	case failed == nil && t.keep:
		return k.bury(ctx, d, v, t.name)
	case failed == nil:
		l := letterOf(d, v)
		l.To, l.Kept = t.name, false
		k.tell(ctx, d, l)
		*d = before
		return nil
	case refused(failed):
		k.logger.Warn("deadletter: the target refuses a message; it stays with its own queue",
			"queue", d.Queue, "id", d.ID, "target", t.name) // why is in the dead letter: it may quote the message
		v.said = withRefusal(v.said, t.name, failed)
		return k.bury(ctx, d, v, "")
	}
	return zq.Postpone(k.putOff(d))
}

func (k *keeper) targetOf(d *zq.Delivery, reason string) *target {
	t, ok := k.routes[reason]
	if !ok {
		t = k.rest
	}
	if t.to == nil || t.to.name == d.Queue {
		return nil
	}
	return t.to
}

// bury makes a dead letter of the message's own queue.
func (k *keeper) bury(ctx context.Context, d *zq.Delivery, v verdict, to string) error {
	l := letterOf(d, v)
	l.To = to
	k.tell(ctx, d, l)
	return zq.Dead(v.reason, v.said)
}

// send puts the message into another queue, once however often it is tried.
func (k *keeper) send(ctx context.Context, d *zq.Delivery, t *target, v verdict) error {
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx) // of a run that was too long: what is left of it is the consumer's Grace
	}
	ctx, cancel := context.WithTimeout(ctx, k.sendTimeout)
	defer cancel()
	err := t.enqueue(ctx, zq.Message{
		ID: copyID(d), Kind: d.Kind, Key: d.Key, ContentType: d.ContentType, Headers: headers(d, v), Body: d.Body,
	})
	switch {
	case err == nil && t.down.Swap(false):
		k.logger.Info("deadletter: the target takes messages again", "target", t.name)
	case err != nil && !refused(err) && !t.down.Swap(true):
		k.logger.Warn("deadletter: the target cannot be reached; messages are postponed", "target", t.name, "error", err)
	}
	return err
}

// putOff is the pause before the next try, and up to a quarter more by the message's id.
func (k *keeper) putOff(d *zq.Delivery) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(d.ID)) // never fails
	return k.pause + time.Duration(float64(k.pause)/4*float64(h.Sum32())/(1<<32))
}

func withRefusal(err error, name string, refusal error) error {
	if err == nil {
		return fmt.Errorf("queue %s refused it: %w", name, refusal)
	}
	text, _ := textOf(err)
	return &refusedError{text: fmt.Sprintf("%s (queue %s refused it: %v)", text, name, refusal), err: err}
}

// refusedError is an application's error with a target's refusal beside it. Its text is made early, for an Error
// method may panic.
type refusedError struct {
	text string
	err  error
}

func (e *refusedError) Error() string { return e.text }
func (e *refusedError) Unwrap() error { return e.err }
