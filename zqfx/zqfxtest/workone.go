package zqfxtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// patience bounds the run of the one message.
const patience = 10 * time.Second

// Ran is one run of one message.
type Ran struct {
	ID, Kind string
	Attempt  int
	// Decision is what became of the message. Its Err is what the handler returned, after its chain.
	zq.Decision
}

// WorkOne runs the next message of a queue through its chain and handler, records its outcome, and tells what became
// of it: an error of the handler fails nothing. The application must not be started, for its consumers would take
// the message. The test fails at once if there is none that is due, and if the handler takes longer than 10 s.
func WorkOne(t testing.TB, app *App, queue string) Ran {
	t.Helper()
	ran, err := app.workOne(t.Context(), queue)
	if err != nil {
		t.Fatalf("zqfxtest: WorkOne(%q): %v", queue, err)
	}
	return ran
}

func (a *App) workOne(ctx context.Context, queue string) (Ran, error) {
	w := a.parts[a.instance].worker
	switch {
	case a.started.Load():
		return Ran{}, errors.New("the application is started; use Drain")
	case w == nil:
		return Ran{}, errors.New("the application only produces")
	}
	handler, config, err := w.Handler(queue)
	if err != nil {
		return Ran{}, err
	}
	o := &one{handler: handler, decided: make(chan struct{})}
	// One slot that claims nothing ahead; a stop gives the message back at once that waits in it.
	config.Concurrency, config.ClaimAhead, config.KeyPrefetch, config.DrainTime = 1, zq.NoClaimAhead, 1, time.Millisecond
	config.Observers = append(config.Observers[:len(config.Observers):len(config.Observers)], zq.Observer{Decided: o.observe})
	c, err := zq.NewConsumer(a.rdb, queue, o, config)
	if err != nil {
		return Ran{}, err
	}
	if err := c.Start(ctx); err != nil {
		return Ran{}, err
	}
	late := o.wait(c)
	if err := errors.Join(late, c.Stop(context.WithoutCancel(ctx))); err != nil {
		return Ran{}, err
	}
	if ran := o.outcome(); ran != nil {
		return *ran, nil
	}
	return Ran{}, a.whyNone(ctx, queue)
}

// whyNone tells why no message ran.
func (a *App) whyNone(ctx context.Context, queue string) error {
	depth, err := a.Inspector(queue).Depth(ctx)
	switch {
	case err != nil:
		return err
	case depth.Paused:
		return errors.New("the queue is paused")
	case depth.Unfinished() == 0:
		return errors.New("the queue is empty")
	}
	return fmt.Errorf("no message is due: %s", describe(depth))
}

// one runs the first message, and holds every other until the consumer stops and takes it back.
type one struct {
	handler zq.Handler
	first   atomic.Pointer[zq.Delivery]

	mu      sync.Mutex
	ran     *Ran
	decided chan struct{} // closed with the first decision
}

// Handle runs the first message it gets.
func (o *one) Handle(ctx context.Context, d *zq.Delivery) error {
	if !o.first.CompareAndSwap(nil, d) {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return o.handler.Handle(ctx, d)
}

// observe keeps what becomes of the first message; an unreadable one is decided without a run, and an ack whose
// effects do not hold twice.
func (o *one) observe(d *zq.Delivery, decision zq.Decision) {
	if !o.first.CompareAndSwap(nil, d) && o.first.Load() != d {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ran == nil {
		close(o.decided)
	}
	o.ran = &Ran{ID: d.ID, Kind: d.Kind, Attempt: d.Attempt, Decision: decision}
}

// wait returns when the message has run, or when the consumer finds none.
func (o *one) wait(c *zq.Consumer) error {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-o.decided:
			return nil
		case <-timeout.C:
			return fmt.Errorf("nothing has become of a message within %s", patience)
		case <-tick.C:
		}
		if state, _ := c.Health(); state == "idle" || state == "paused" {
			return nil
		}
	}
}

// outcome is the run, once the consumer has stopped; nil if there was none.
func (o *one) outcome() *Ran {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ran
}
