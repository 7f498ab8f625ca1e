package timeout_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// On a real server: a run that took too long is a failed attempt, and the dead letter says why.
func TestOnRedis(t *testing.T) {
	t.Parallel()
	rdb, queue := zqtest.Shared(t).Client(), zqtest.Queue(t)
	p, err := zq.NewProducer(rdb, queue)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Enqueue(t.Context(), zq.Message{ID: "slow"}); err != nil {
		t.Fatal(err)
	}
	c, err := zq.NewConsumer(rdb, queue, must(t, 10*time.Millisecond)(zq.HandlerFunc(passOn)), zq.ConsumerConfig{
		MaxAttempts: 2, RetryDelay: func(*zq.Delivery, error) time.Duration { return 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	in, err := zq.NewInspector(rdb, queue)
	if err != nil {
		t.Fatal(err)
	}
	var l zq.DeadLetter
	zqtest.Eventually(t, limit, func() bool {
		l, err = in.DeadLetter(t.Context(), "slow")
		return err == nil
	}, "the dead letter")
	if l.Reason != zq.ReasonAttempts || l.Attempts != 2 || !strings.Contains(l.Error, zq.ErrTimeout.Error()+" (10ms)") {
		t.Errorf("%+v", l)
	}
}
