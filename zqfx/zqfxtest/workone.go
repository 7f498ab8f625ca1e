package zqfxtest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// patience bounds the wait for the one message.
const patience = 10 * time.Second

// Ran is one run of one message.
type Ran struct {
	ID, Kind string
	Attempt  int
	// Err is what the handler returned, after its chain.
	Err error
}

// WorkOne runs the next message of a queue through its chain and handler, records its outcome, and tells what the
// handler returned: an error fails nothing. The application must not be started, for its consumers would take the
// message. The test fails if there is none that is due.
func WorkOne(t testing.TB, app *App, queue string) Ran {
	t.Helper()
	ran, err := app.workOne(t.Context(), queue)
	if err != nil {
		t.Fatal(err)
	}
	return ran
}

func (a *App) workOne(ctx context.Context, queue string) (Ran, error) {
	w := a.parts[a.instance].worker
	switch {
	case a.started:
		return Ran{}, fmt.Errorf("zqfxtest: WorkOne(%q) in a started application; use Drain", queue)
	case w == nil:
		return Ran{}, fmt.Errorf("zqfxtest: WorkOne(%q) in an application that only produces", queue)
	}
	handler, config, err := w.Handler(queue)
	if err != nil {
		return Ran{}, err
	}
	depth, err := a.Inspector(queue).Depth(ctx)
	if err != nil || depth.Unfinished() == 0 {
		return Ran{}, fmt.Errorf("zqfxtest: WorkOne(%q): the queue is empty (error %w)", queue, err)
	}
	o := &one{handler: handler, ran: make(chan Ran, 1)}
	// One slot that claims nothing ahead; a stop gives the message back at once that waits in it.
	config.Concurrency, config.ClaimAhead, config.KeyPrefetch, config.DrainTime = 1, zq.NoClaimAhead, 1, time.Millisecond
	c, err := zq.NewConsumer(a.rdb, queue, o, config)
	if err != nil {
		return Ran{}, err
	}
	if err := c.Start(ctx); err != nil {
		return Ran{}, err
	}
	return o.wait(ctx, c, queue)
}

// one runs the first message, and holds every other until the consumer stops and takes it back.
type one struct {
	handler zq.Handler
	taken   atomic.Bool
	ran     chan Ran
}

// Handle runs the first message it gets.
func (o *one) Handle(ctx context.Context, d *zq.Delivery) error {
	if o.taken.Swap(true) {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	err := o.handler.Handle(ctx, d)
	o.ran <- Ran{ID: d.ID, Kind: d.Kind, Attempt: d.Attempt, Err: err}
	return err
}

// wait gives the run once its outcome is recorded.
func (o *one) wait(ctx context.Context, c *zq.Consumer, queue string) (Ran, error) {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	var ran Ran
	var late error
	select {
	case ran = <-o.ran:
	case <-timeout.C:
		late = fmt.Errorf("zqfxtest: WorkOne(%q): no message came due within %s", queue, patience)
	}
	if err := c.Stop(context.WithoutCancel(ctx)); err != nil && late == nil {
		late = err
	}
	return ran, late
}
