package zqfxtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
	"github.com/zqueue/zqueue/zqfx/zqfxtest"
)

// What handlers enqueue further is drained too, from queue to queue and back; dead letters are no work.
func TestDrainFollowsTheWork(t *testing.T) {
	t.Parallel()
	const steps = 7
	var p *zqfx.Producers
	done := make(chan string, 10)
	pass := func(next string) func(context.Context, *zq.Delivery, Mail) error {
		return func(ctx context.Context, d *zq.Delivery, m Mail) error {
			if m.To == "nobody" {
				return zq.Dead("unknown", nil)
			}
			if len(m.To) == steps {
				done <- m.To
				return nil
			}
			producer, err := p.For(next)
			if err == nil {
				_, err = Send.Send(ctx, producer, Mail{To: m.To + "."})
			}
			return err
		}
	}
	app := zqfxtest.New(t, zqfx.Module(), fx.Populate(&p), zqfx.HandleFunc("a", Send, pass("b")),
		zqfx.HandleFunc("b", Send, pass("a")))
	app.RequireStart()
	drained(t, app) // of nothing
	for range 10 {
		for _, to := range []string{".", "nobody"} {
			if _, err := Send.Send(t.Context(), app.Producer("a"), Mail{To: to}); err != nil {
				t.Fatal(err)
			}
		}
		drained(t, app)
		select {
		case got := <-done:
			if len(got) != steps {
				t.Errorf("got %q", got)
			}
		default:
			t.Fatal("drained ahead of the last step")
		}
	}
	if d, err := app.Inspector("a").Depth(t.Context()); err != nil || d.Dead != 10 {
		t.Errorf("%d dead letters, %v", d.Dead, err)
	}
}

// Where nobody works, waiting is no use.
func TestDrainWithoutWorkersIsAnError(t *testing.T) {
	t.Parallel()
	handle, got := recipients()
	app := zqfxtest.New(t, mails(handle))
	drained(t, app) // nothing is left, so nobody need work
	post(t, app, "ada", "bob")
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	err := app.Drain(ctx)
	if text := fmt.Sprint(err); !strings.Contains(text, "not started") || !strings.Contains(text, "queue mail has 2 pending") {
		t.Errorf("not started: %v", err)
	}
	app.RequireStart()
	drained(t, app)
	app.RequireStop()
	if got() == "" {
		t.Error("nobody got mail")
	}
	produces := zqfxtest.New(t, zqfx.Module(zqfx.ProducerOnly()), zqfx.Queue("mail")).RequireStart()
	if err := produces.Drain(ctx); err == nil || !strings.Contains(err.Error(), "consumes nothing") {
		t.Errorf("a producer: %v", err)
	}
}

// What was sent to another service's queue is that service's work.
func TestDrainLeavesQueuesOfOthers(t *testing.T) {
	t.Parallel()
	app := zqfxtest.New(t, zqfx.Module(), zqfx.Sender("reminders", Remind),
		zqfx.Handle("mail", Send, func(s *zqfx.SenderOf[Mail]) func(context.Context, *zq.Delivery, Mail) error {
			return func(ctx context.Context, _ *zq.Delivery, m Mail) error {
				_, err := s.Send(ctx, m)
				return err
			}
		})).RequireStart()
	post(t, app, "ada")
	drained(t, app)
	if got := zqfxtest.RequireEnqueued(t, app, "reminders", Remind); len(got) != 1 || got[0].Payload.To != "ada" {
		t.Errorf("got %+v", got)
	}
}

// The context bounds the wait, and the error says what is left.
func TestDrainEndsWithItsContext(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	app := zqfxtest.New(t, mails(func(ctx context.Context, _ *zq.Delivery, _ Mail) error {
		close(entered)
		<-ctx.Done()
		return ctx.Err()
	}), fx.Decorate(func(c zqfx.Config) zqfx.Config { c.ShutdownTimeout = zqfx.MinShutdownTimeout; return c })).RequireStart()
	post(t, app, "ada")
	zqtest.Wait(t, entered, limit)
	if _, err := Send.Send(t.Context(), app.Producer("mail"), Mail{}, zq.WithDelay(time.Hour)); err != nil {
		t.Fatal(err)
	}
	why := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, why)
	defer cancel()
	err := app.Drain(ctx)
	if !errors.Is(err, why) || !strings.Contains(fmt.Sprint(err), "queue mail has 0 pending, 1 delayed, 1 running") {
		t.Errorf("drain: %v", err)
	}
	over, stop := context.WithCancel(t.Context())
	stop()
	if err := app.Drain(over); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is over: %v", err)
	}
}
