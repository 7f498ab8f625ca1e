package middleware_test

import (
	"context"
	"errors"
	"testing"

	"github.com/zqueue/zqueue/middleware"
	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/middleware/retry"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// The whole standard chain at work: an ack, a retry, a dead letter, a panic in the handler and one in a layer.
func TestStandardOnRedis(t *testing.T) {
	t.Parallel()
	rdb, queue := zqtest.Shared(t).Client(), zqtest.Queue(t)
	angry := func(next zq.Handler) zq.Handler {
		return zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
			if d.ID == "layer panics" && d.Attempt == 1 {
				panic("layer")
			}
			return next.Handle(ctx, d)
		})
	}
	soon := retry.Curve{Initial: 1e6, Max: 1e6, Multiplier: 1}
	inspector, err := zq.NewInspector(rdb, queue)
	if err != nil {
		t.Fatal(err)
	}
	stack, err := middleware.Standard(middleware.Retry(retry.Backoff(soon)), middleware.Idempotency(idempotency.FromID()),
		middleware.User("angry", angry).Before(middleware.RoleRetry)).
		Build(middleware.Env{Queue: queue, Redis: rdb, Inspector: inspector})
	if err != nil {
		t.Fatal(err)
	}
	handler := zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		switch {
		case d.ID == "dies":
			return zq.Dead("why", nil)
		case d.ID == "panics" && d.Attempt == 1:
			panic("handler")
		case d.ID == "fails" && d.Attempt < 3:
			return errors.New("not yet")
		case d.ID == "never":
			return errors.New("never")
		}
		return nil
	})
	p, err := zq.NewProducer(rdb, queue, zq.WithSendMiddleware(stack.Send...))
	if err != nil {
		t.Fatal(err)
	}
	c, err := zq.NewConsumer(rdb, queue, stack.Chain.Then(handler), zq.ConsumerConfig{MaxAttempts: 4, Observers: stack.Observers})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"acked", "fails", "dies", "panics", "layer panics", "never"} {
		if _, err := p.Enqueue(t.Context(), zq.Message{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string]string{
		"acked": "done", "fails": "done", "dies": "why", "panics": "done", "layer panics": "done", "never": zq.ReasonAttempts,
	} {
		zqtest.Eventually(t, limit, func() bool { return become(t, inspector, id) == want }, id+" to become "+want)
	}
	if err := errors.Join(c.Stop(context.Background()), stack.Close(context.Background())); err != nil {
		t.Error(err)
	}
}

// become is what a message has come to: its state, or as a dead letter the reason.
func become(t *testing.T, in *zq.Inspector, id string) string {
	t.Helper()
	info, err := in.Message(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if info.Dead != nil {
		return info.Dead.Reason
	}
	return string(info.State)
}
