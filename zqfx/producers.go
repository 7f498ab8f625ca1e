package zqfx

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// closeTime bounds the wait for calls that are under way when the application stops.
const closeTime = time.Second

// Producers has a producer and an inspector for each declared queue of an instance. It is safe for concurrent
// use. When the application stops they are closed after the consumers.
type Producers struct {
	plan   *plan
	link   *link
	stacks *stacksToCome
	looks  inspectors

	mu     sync.Mutex
	made   map[string]*zq.Producer
	closed bool
}

func newProducers(lc fx.Lifecycle, p *plan, l *link, s *stacksToCome, looks inspectors) *Producers {
	ps := &Producers{plan: p, link: l, stacks: s, looks: looks, made: make(map[string]*zq.Producer)}
	lc.Append(fx.StopHook(ps.close))
	return ps
}

// For is the producer of a declared queue, always the same one; it has the queue's settings and chain. It does no
// I/O. Do not close it. It sends once the application is built: the chain may have parts that want a producer.
func (ps *Producers) For(queue string) (*zq.Producer, error) {
	q := ps.plan.queues[queue]
	if q == nil {
		return nil, ps.unknown(queue)
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p := ps.made[queue]; p != nil {
		return p, nil
	}
	if ps.closed {
		return nil, fmt.Errorf("zqfx: producer of %s: %w", queue, zq.ErrClosed)
	}
	opts := append(q.settings.producerOptions(), zq.WithSendMiddleware(ps.stacks.sends(queue)))
	p, err := zq.NewProducer(ps.link.rdb, queue, opts...)
	if err != nil {
		return nil, fmt.Errorf("zqfx: producer of %s: %w", queue, err)
	}
	ps.made[queue] = p
	return p, nil
}

// Inspector is the inspector of a declared queue.
func (ps *Producers) Inspector(queue string) (*zq.Inspector, error) {
	if i := ps.looks[queue]; i != nil {
		return i, nil
	}
	return nil, ps.unknown(queue)
}

// Queues are the names of the declared queues, sorted.
func (ps *Producers) Queues() []string {
	var names []string
	for _, q := range ps.plan.sorted() {
		names = append(names, q.name)
	}
	return names
}

func (ps *Producers) unknown(queue string) error {
	return fmt.Errorf("zqfx: %w", invalid("queue", fmt.Sprintf("%q", queue), "a declared queue: "+ps.plan.names()))
}

// close waits a moment for calls under way.
func (ps *Producers) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	ps.mu.Lock()
	ps.closed = true
	made := ps.made
	ps.mu.Unlock()
	var wg sync.WaitGroup
	faults := make(chan error, len(made))
	for _, p := range made {
		wg.Go(func() { faults <- p.Close(ctx) })
	}
	wg.Wait()
	close(faults)
	var all []error
	for err := range faults {
		all = append(all, err)
	}
	return errors.Join(all...)
}
