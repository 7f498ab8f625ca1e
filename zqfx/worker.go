package zqfx

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Worker has the consumers of an instance. It starts and stops with the application, and has methods only for
// who looks at what was wired.
type Worker struct {
	plan   *plan
	rdb    redis.UniversalClient
	around surroundings
	stacks *stacks
	health *Health
	fatal  *fatal

	runners  []*runner
	watchers sync.WaitGroup
}

// runner is the consumer of one queue.
type runner struct {
	queue    *queuePlan
	handler  zq.Handler // in its chain
	config   zq.ConsumerConfig
	consumer *zq.Consumer
	told     atomic.Bool // somebody tells, or has told, how the consumer ended
}

// newWorker makes the consumers. It does no I/O.
func newWorker(m *module, p *plan, l *link, around surroundings, st *stacks, built []builtHandler) (*Worker, error) {
	w := &Worker{
		plan: p, rdb: l.rdb, around: around, stacks: st, fatal: newFatal(m, p.config, around.log),
	}
	byDecl := make(map[*handlerDecl]builtHandler, len(built))
	for _, b := range built {
		byDecl[b.decl] = b
	}
	var faults []error
	for _, q := range p.sorted() {
		if !q.consume {
			continue
		}
		r, err := w.runner(q, byDecl)
		if err != nil {
			faults = append(faults, fmt.Errorf("zqfx: queue %q: %w", q.name, err))
			continue
		}
		w.runners = append(w.runners, r)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return w, nil
}

// runner puts the consumer of a queue together.
func (w *Worker) runner(q *queuePlan, built map[*handlerDecl]builtHandler) (*runner, error) {
	handler, err := q.handler(built)
	if err != nil {
		return nil, err
	}
	stack := w.stacks.byQueue[q.name]
	r := &runner{queue: q, handler: stack.Chain.Then(handler), config: q.settings.consumerConfig(w.around.log)}
	r.config.Observers = stack.Observers
	r.consumer, err = zq.NewConsumer(w.rdb, q.name, r.handler, r.config)
	return r, err
}

// handler is what runs a queue's messages, without its chain.
func (q *queuePlan) handler(built map[*handlerDecl]builtHandler) (zq.Handler, error) {
	var bindings []zq.Binding
	for _, d := range q.handlers {
		b, ok := built[d]
		switch {
		case !ok:
			return nil, d.at.fault(d.String(), errors.New("its handler was taken out of the application, by fx.Decorate perhaps"))
		case d.raw():
			return b.raw, nil
		}
		bindings = append(bindings, b.binding)
	}
	if len(bindings) == 1 {
		return bindings[0], nil
	}
	return zq.NewMux(bindings...)
}

// Queues are the queues that this process consumes, sorted.
func (w *Worker) Queues() []string {
	var names []string
	for _, r := range w.runners {
		names = append(names, r.queue.name)
	}
	return names
}

// Handler is a consumed queue's handler in its chain, with its consumer's configuration: what is needed to run a
// message without the worker, as a test does.
func (w *Worker) Handler(queue string) (zq.Handler, zq.ConsumerConfig, error) {
	for _, r := range w.runners {
		if r.queue.name == queue {
			return r.handler, r.config, nil
		}
	}
	fault := invalid("queue", fmt.Sprintf("%q", queue), "a queue that is consumed here")
	return nil, zq.ConsumerConfig{}, fmt.Errorf("zqfx: %w", fault)
}

func (w *Worker) status() []QueueStatus {
	all := make([]QueueStatus, len(w.runners))
	for i, r := range w.runners {
		state, trouble := r.consumer.Health()
		all[i] = QueueStatus{Queue: r.queue.name, State: state, Trouble: trouble, Stats: r.consumer.Stats()}
	}
	return all
}
