package zqfx

import (
	"errors"
	"fmt"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// QueueOption is a setting of a queue.
type QueueOption interface{ applyQueue(*queueOptions) }

type queueOption func(*settings)

func (f queueOption) applyQueue(q *queueOptions) { q.changes = append(q.changes, f) }

// queueOptions is what the options of one Queue say.
type queueOptions struct {
	instance instance
	changes  []func(*settings)
}

// queueDecl is a queue as it was declared.
type queueDecl struct {
	name    string
	at      origin
	changes []func(*settings) // over what the configuration says
	named   bool              // by Queue: it has settings, and needs a handler where it is consumed
}

// over gives the settings of the queue on top of the configuration's.
func (d *queueDecl) over(c QueueConfig) settings {
	s := settings{QueueConfig: c}
	for _, change := range d.changes {
		change(&s)
	}
	return s
}

// Queue declares a queue with its settings, and provides its *zq.Producer and *zq.Inspector under
// name:"<queue>". Options that are out of range or contradict each other are errors of the application, with the
// line that declared the queue.
func Queue(name string, opts ...QueueOption) fx.Option {
	at := callerOrigin()
	var o queueOptions
	for _, opt := range opts {
		opt.applyQueue(&o)
	}
	d := queueDecl{name: name, at: at, changes: o.changes, named: true}
	s := d.over(QueueConfig{})
	what := fmt.Sprintf("Queue(%q)", name)
	var faults []fx.Option
	for _, err := range []error{o.instance.fault(), queueFault(name), s.validate()} {
		if err != nil {
			faults = append(faults, fx.Error(at.fault(what, err)))
		}
	}
	if len(faults) > 0 {
		return fx.Options(faults...)
	}
	byName := `name:"` + o.instance.queueName(name) + `"`
	return fx.Module("zqfx.Queue("+name+")",
		fx.Provide(fx.Annotated{
			Name: o.instance.queueName(name), Target: func() oneQueueOfAName { return oneQueueOfAName{} },
		}),
		declare(o.instance, groupQueues, d, at.fault(what, errNoModule(o.instance))),
		fx.Provide(
			fx.Annotate(func(p *Producers) (*zq.Producer, error) { return p.For(name) },
				fx.ParamTags(o.instance.nameTag()), fx.ResultTags(byName)),
			fx.Annotate(func(p *Producers) (*zq.Inspector, error) { return p.Inspector(name) },
				fx.ParamTags(o.instance.nameTag()), fx.ResultTags(byName)),
		),
	)
}

// Value groups of an instance. None is soft: their members are needed by nobody else.
const (
	groupQueues   = "queues"   // queueDecl
	groupHandlers = "handlers" // *handlerDecl
	groupBuilt    = "built"    // builtHandler
	groupChains   = "chains"   // chainDecl
	groupLate     = "late"     // builtChain
)

// oneQueueOfAName is the first that Queue provides: what fx says of a second one names it.
type oneQueueOfAName struct{}

// declare puts a declaration into its group of the instance. An application without a Module to collect it fails
// with orphan: nobody would work on it, and nothing would say so.
func declare[D any](i instance, group string, d D, orphan error) fx.Option {
	return fx.Options(
		fx.Provide(fx.Annotated{Group: i.group(group), Target: func() D { return d }}),
		fx.Invoke(fx.Annotate(func(m *moduleOfInstance) error {
			if m == nil {
				return orphan
			}
			return nil
		}, fx.ParamTags(i.nameTag()+` optional:"true"`))),
	)
}

func errNoModule(i instance) error {
	if i == "" {
		return errors.New("the application has no zqfx.Module()")
	}
	return fmt.Errorf("the application has no zqfx.Module(zqfx.Instance(%q))", string(i))
}
