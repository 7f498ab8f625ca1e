package zqfx_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// B52: the context that everything began with ends, and the application stops, while messages are sent and handlers
// run. What was accepted is done or there, each once; nobody panics.
func TestB52StopUnderLoadConcurrentSafe(t *testing.T) {
	t.Parallel()
	rdb, queue := zqtest.Shared(t).Client(), zqtest.Queue(t)
	root, cancelRoot := context.WithCancel(t.Context())
	defer cancelRoot()
	var runs atomic.Int64
	enough := make(chan struct{})
	var p *zqfx.Producers
	app, _ := assembled(t, client(rdb), zqfx.Module(), fx.Populate(&p),
		zqfx.Queue(queue, zqfx.Concurrency(8), zqfx.Lease(time.Minute)),
		zqfx.HandleFunc(queue, Placed, func(context.Context, *zq.Delivery, OrderPlaced) error {
			if runs.Add(1) == 50 {
				close(enough)
			}
			return nil
		}))
	if err := app.Start(root); err != nil {
		t.Fatal(err)
	}
	accepted, senders := sendersOf(root, t, p, queue)
	zqtest.Wait(t, enough, limit)
	cancelRoot()
	end := stopping(app, limit)
	senders.Wait()
	if err := zqtest.Wait(t, end, limit); err != nil {
		t.Errorf("stop: %v", err)
	}
	in := inspectorOf(t, rdb, queue)
	c, err := in.Counters(t.Context())
	d := depthOf(t, rdb, queue)
	whole := c.Enqueued >= accepted.Load() && c.Acked+d.Pending == c.Enqueued && c.Acked == runs.Load()
	if err != nil || !whole || d.Running+d.Claims != 0 {
		t.Errorf("%d accepted, %d runs: %+v, %+v, %v", accepted.Load(), runs.Load(), c, d, err)
	}
	finished(t, rdb, queue, int(c.Enqueued))
}

// sendersOf send as fast as they can until ctx ends or their producer is closed, and count what was accepted.
func sendersOf(
	ctx context.Context, t *testing.T, p *zqfx.Producers, queue string,
) (accepted *atomic.Int64, wg *sync.WaitGroup) {
	t.Helper()
	producer, err := p.For(queue)
	if err != nil {
		t.Fatal(err)
	}
	accepted, wg = &atomic.Int64{}, &sync.WaitGroup{}
	for range 4 {
		wg.Go(func() {
			for i := range 5000 {
				_, err := Placed.Send(ctx, producer, OrderPlaced{}, zq.WithKey(fmt.Sprint("k", i%7)))
				if err == nil {
					accepted.Add(1)
					continue
				}
				if ctx.Err() == nil && !errors.Is(err, zq.ErrClosed) {
					t.Errorf("send: %v", err)
				}
				return
			}
		})
	}
	return accepted, wg
}
