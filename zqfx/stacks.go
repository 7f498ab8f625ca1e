package zqfx

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/middleware"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// stacks are the built chains and the inspectors of an instance's queues. Producers and consumers of a queue
// share one.
type stacks struct {
	byQueue    map[string]middleware.Stack
	inspectors map[string]*zq.Inspector
}

func newStacks(lc fx.Lifecycle, p *plan, l *link, around surroundings) (*stacks, error) {
	s := &stacks{byQueue: make(map[string]middleware.Stack), inspectors: make(map[string]*zq.Inspector)}
	var faults []error
	for _, q := range p.sorted() {
		if err := s.build(q, l, around); err != nil {
			faults = append(faults, q.chain.fault(q.name, err))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, errors.Join(err, s.close(context.Background()))
	}
	lc.Append(fx.StopHook(s.close))
	return s, nil
}

func (s *stacks) build(q *queuePlan, l *link, around surroundings) error {
	inspector, err := zq.NewInspector(l.rdb, q.name)
	if err != nil {
		return err
	}
	stack, err := q.chain.builder.Build(middleware.Env{
		Queue: q.name, Redis: l.rdb, TracerProvider: around.tracer, MeterProvider: around.meter,
		Logger: around.log, Inspector: inspector,
	})
	if err != nil {
		return err
	}
	s.byQueue[q.name], s.inspectors[q.name] = stack, inspector
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
