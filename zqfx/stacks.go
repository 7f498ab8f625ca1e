package zqfx

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/middleware"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// stacks are the built chains of an instance's queues. Producers and consumers of a queue share one.
type stacks struct{ byQueue map[string]middleware.Stack }

// stacksToCome are the stacks for who must not need them: a chain's constructor may want a producer.
type stacksToCome struct{ built atomic.Pointer[stacks] }

// sends is the part of a queue's chain that goes around its producer's calls.
func (s *stacksToCome) sends(queue string) zq.SendMiddleware {
	return func(next zq.SendFunc) zq.SendFunc {
		var whole atomic.Pointer[zq.SendFunc]
		return func(ctx context.Context, o *zq.Outgoing) ([]zq.Result, error) {
			if send := whole.Load(); send != nil {
				return (*send)(ctx, o)
			}
			built := s.built.Load()
			if built == nil {
				return nil, fmt.Errorf("zqfx: send to %s: %w", queue, errNotBuilt)
			}
			send := next
			for _, mw := range slices.Backward(built.byQueue[queue].Send) {
				send = mw(send)
			}
			whole.Store(&send)
			return send(ctx, o)
		}
	}
}

var errNotBuilt = errors.New("the application is not built yet; send in a hook of the start instead")

// inspectors are those of the declared queues, by name.
type inspectors map[string]*zq.Inspector

func newInspectors(p *plan, l *link) (inspectors, error) {
	all := make(inspectors)
	var faults []error
	for _, q := range p.sorted() {
		i, err := zq.NewInspector(l.rdb, q.name)
		all[q.name], faults = i, append(faults, err)
	}
	return all, errors.Join(faults...)
}

func newStacks(lc fx.Lifecycle, p *plan, l *link, around surroundings, to *stacksToCome, looks inspectors, late []builtChain) (*stacks, error) {
	for _, c := range late {
		c.late.built = c.builder
	}
	s := &stacks{byQueue: make(map[string]middleware.Stack)}
	var faults []error
	for _, q := range p.sorted() {
		if err := s.build(q, l, looks[q.name], around); err != nil {
			faults = append(faults, q.chain.fault(q.name, err))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, errors.Join(err, s.close(context.Background()))
	}
	lc.Append(fx.StopHook(s.close))
	to.built.Store(s)
	return s, nil
}

func (s *stacks) build(q *queuePlan, l *link, inspector *zq.Inspector, around surroundings) error {
	stack, err := q.chain.builder.Build(middleware.Env{
		Queue: q.name, Redis: l.rdb, TracerProvider: around.tracer, MeterProvider: around.meter,
		Logger: around.log, Inspector: inspector,
	})
	if err != nil {
		return err
	}
	s.byQueue[q.name] = stack
	if slices.ContainsFunc(stack.Chain, func(mw zq.Middleware) bool { return mw == nil }) {
		return invalid("chain", "a nil middleware", "none")
	}
	around.log.Debug("zqfx: chain", "queue", q.name, "outermost_first", strings.Join(stack.Names, " > "))
	return nil
}

// close ends what the chains started.
func (s *stacks) close(ctx context.Context) error {
	var faults []error
	for name, stack := range s.byQueue {
		if stack.Close == nil {
			continue
		}
		if err := guard("Close", func() error { return stack.Close(ctx) }); err != nil {
			faults = append(faults, fmt.Errorf("zqfx: close the chain of queue %q: %w", name, err))
		}
	}
	return errors.Join(faults...)
}
