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
	if len(w.runners) == 0 {
		w.health.enter(phaseRunning)
		return nil
	}
	checkEviction(ctx, w.rdb, w.around.log)
	if err := w.each(func(r *runner) error { return r.consumer.Start(ctx) }); err != nil {
		//nolint:contextcheck // the start's context may be what ended
		return errors.Join(err, w.stop(context.Background()))
	}
	for _, r := range w.runners {
		//nolint:contextcheck // a watcher outlives the start: it ends with the consumer, or when the worker stops
		w.watchers.Go(func() { w.watch(r) })
		w.remark(r)
	}
	w.health.enter(phaseRunning)
	return nil
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
	select {
	case <-w.stopping:
		return
	case <-r.consumer.Done():
	}
	select {
	case <-w.stopping:
	default:
		w.fatal.ended(r.queue.name, r.consumer.Stop(context.Background())) // why: it has stopped
	}
}

// stop drains all consumers at once, and returns when the budget is over even if a handler has not: fx runs no
// other hook after its deadline, and one of those closes what handlers work with.
func (w *Worker) stop(ctx context.Context) error {
	w.health.enter(phaseStopping)
	w.stopOnce.Do(func() { close(w.stopping) })
	whole := budget(ctx, w.plan.config)
	soft, cancel := context.WithTimeout(context.WithoutCancel(ctx), whole-lastWords(whole))
	defer cancel()
	drained := make(chan error, 1)
	go func() { // ends with the drain, which is bounded by the consumers' last words with Redis
		err := w.each(func(r *runner) error { return r.consumer.Stop(soft) })
		w.watchers.Wait()
		drained <- err
	}()
	hard := time.NewTimer(whole)
	defer hard.Stop()
	select {
	case err := <-drained:
		return err
	case <-hard.C:
		return fmt.Errorf("zqfx: the consumers have not stopped within %s; leases give their messages back", whole)
	}
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
