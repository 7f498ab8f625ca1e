package zqfx

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// guarded is a hook that gives its panic as an error.
func guarded(what string, hook func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return guard(what, func() error { return hook(ctx) }) }
}

// start starts all consumers, and returns when they work. ctx is for the checks alone: fx ends it when the start
// is over. If one cannot start none goes on, for fx does not stop what failed to start.
func (w *Worker) start(ctx context.Context) error {
	err := w.each(func(r *runner) error { return r.consumer.Start(ctx) })
	if err == nil {
		err = ctx.Err() // fx has given up already
	}
	if err != nil {
		return errors.Join(err, w.undo(ctx))
	}
	if len(w.runners) > 0 {
		checkEviction(ctx, w.rdb, w.around.log)
	}
	for _, r := range w.runners {
		//nolint:contextcheck // a watcher outlives the start: it ends with the consumer
		w.watchers.Go(func() { w.watch(r) })
		w.remark(r)
	}
	w.health.enter(phaseRunning)
	return nil
}

// undo stops what has started, within what ctx leaves to the hooks that fx now rolls back.
func (w *Worker) undo(ctx context.Context) error {
	if budget(ctx, w.plan.config) < MinShutdownTimeout || ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx) // fx waits no more, and rolls nothing back
	}
	return w.stop(ctx)
}

// remark logs, once, what may surprise about a queue's settings.
func (w *Worker) remark(r *runner) {
	c, q := w.plan.config, r.queue
	if q.cutShort(c) {
		w.around.log.Warn("zqfx: a shutdown ends before the queue's handlers had their time", "queue", q.name,
			"drain_time", r.config.DrainTime, "grace", r.config.Grace, "shutdown_timeout", c.shutdownTimeout())
	}
	if _, configured := c.Queues[q.name]; !q.decl.named && !configured {
		w.around.log.Info("zqfx: a queue has default settings, for there is no Queue for it", "queue", q.name)
	}
}

// watch reports a consumer that ends by itself.
func (w *Worker) watch(r *runner) {
	<-r.consumer.Done()
	if r.told.CompareAndSwap(false, true) {
		w.fatal.ended(r.queue.name, r.consumer.Stop(context.Background())) // why: it has stopped
	}
}

// stop ends all consumers. Where it was asked for because one had ended, errors are logged: with one of them fx would
// exit by another code than ExitFatal.
func (w *Worker) stop(ctx context.Context) error {
	w.health.enter(phaseStopping)
	err := w.drain(ctx)
	if err != nil && w.fatal.asked.Load() {
		w.around.log.Error("zqfx: the consumers did not stop in good order", "error", err)
		return nil
	}
	return err
}

// drain drains all consumers at once, and returns when the budget is over even if a handler has not: fx runs no
// other hook after its deadline, and one of those closes what handlers work with.
func (w *Worker) drain(ctx context.Context) error {
	whole := budget(ctx, w.plan.config)
	soft, cancel := context.WithTimeout(context.WithoutCancel(ctx), whole-lastWords(whole))
	defer cancel()
	drained := make(chan error, 1)
	go func() { // ends with the drain, which is bounded by the consumers' last words with Redis
		err := w.each(func(r *runner) error { return r.stop(soft) })
		w.watchers.Wait()
		drained <- err
	}()
	hard := time.NewTimer(whole)
	defer hard.Stop()
	select {
	case err := <-drained:
		return err
	case <-hard.C:
		return fmt.Errorf("zqfx: the consumers, or OnFatal, have not come to an end within %s; "+
			"leases give their messages back", whole)
	}
}

// stop stops the consumer. Of one that ends by itself, perhaps with handlers still at work, watch tells.
func (r *runner) stop(ctx context.Context) error {
	state, _ := r.consumer.Health()
	first := state != "stopped" && r.told.CompareAndSwap(false, true)
	if err := r.consumer.Stop(ctx); first {
		return err
	}
	return nil
}

// each does something to all consumers at once, and gives all their errors.
func (w *Worker) each(do func(*runner) error) error {
	faults := make([]error, len(w.runners))
	var wg sync.WaitGroup
	for i, r := range w.runners {
		wg.Go(func() {
			if err := guard("consumer of "+r.queue.name, func() error { return do(r) }); err != nil {
				faults[i] = fmt.Errorf("zqfx: %w", err)
			}
		})
	}
	wg.Wait()
	return errors.Join(faults...)
}
