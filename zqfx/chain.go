package zqfx

import (
	"fmt"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/middleware"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// Builder builds the chain around a queue's handlers, once for each queue; middleware.Plan is one.
type Builder interface {
	Build(env middleware.Env) (middleware.Stack, error)
}

// PlainChain is a chain that needs nothing built.
func PlainChain(chain zq.Chain) Builder {
	if chain == nil {
		chain = zq.Chain{} // no nil of a type
	}
	return plainChain(chain)
}

type plainChain zq.Chain

// Build gives the chain, and refuses a nil in it.
func (c plainChain) Build(middleware.Env) (middleware.Stack, error) {
	names := make([]string, len(c))
	for i, mw := range c {
		if mw == nil {
			return middleware.Stack{}, invalid(fmt.Sprintf("chain[%d]", i), "nil", "a middleware")
		}
		names[i] = fmt.Sprintf("plain %d", i+1)
	}
	return middleware.Stack{Chain: zq.Chain(c), Names: names}, nil
}

// ChainOption says what a chain is for.
type ChainOption interface{ applyChain(*chainConfig) }

type chainConfig struct {
	instance instance
	queue    string
}

// ForQueue makes a chain that of one queue alone, instead of the instance's.
func ForQueue(queue string) ChainOption { return forQueue(queue) }

type forQueue string

func (q forQueue) applyChain(c *chainConfig) { c.queue = string(q) }

// chainDecl is a chain as it was declared.
type chainDecl struct {
	call    string // the function that declared it
	builder Builder
	queue   string // "" for all that have none of their own
	at      origin
}

// String is the call that declared it.
func (d *chainDecl) String() string {
	if d.queue == "" {
		return d.call + "(…)"
	}
	return fmt.Sprintf("%s(…, ForQueue(%q))", d.call, d.queue)
}

// fault is what is wrong with the chain that was built for a queue.
func (d *chainDecl) fault(queue string, err error) error {
	err = fmt.Errorf("chain of queue %q: %w", queue, err)
	if d.at == "" {
		return fmt.Errorf("zqfx: %w", err) // nobody declared it: the standard chain
	}
	return d.at.fault(d.String(), err)
}

// Chain sets the chain around the handlers of the instance's queues, or of one queue. It is one value, for its
// order matters, and the order of values that several parts of an application provide is not defined. Two chains
// for the same queues are an error, and so is one whose method Validate() error, if it has one, finds a fault, as
// that of middleware.Plan does. Without any the chain is middleware.Standard().
//
// A chain with dependencies is ChainFrom's. It is also the way to wrap all handlers, with a middleware.User layer: fx.Decorate does not reach them.
func Chain(b Builder, opts ...ChainOption) fx.Option {
	c := chainConfigOf(opts)
	d := chainDecl{call: "Chain", builder: b, queue: c.queue, at: callerOrigin()}
	return c.declare(d, builderFault(b))
}

func chainConfigOf(opts []ChainOption) chainConfig {
	var c chainConfig
	for _, o := range opts {
		o.applyChain(&c)
	}
	return c
}

// declare declares a chain, unless it has a fault.
func (c chainConfig) declare(d chainDecl, fault error) fx.Option {
	var faults []fx.Option
	for _, err := range []error{fault, c.instance.fault()} {
		if err != nil {
			faults = append(faults, fx.Error(d.at.fault(d.String(), err)))
		}
	}
	if len(faults) > 0 {
		return fx.Options(faults...)
	}
	return declare(c.instance, groupChains, d, d.at.fault(d.String(), errNoModule(c.instance)))
}

// builderFault is what shows of a chain before it is built, as the order of a middleware.Plan does.
func builderFault(b Builder) error {
	if _, plain := b.(plainChain); plain {
		return nil // an empty chain is one
	}
	if isNil(b) {
		return invalid("chain", "nil", "a Builder, such as middleware.Standard()")
	}
	if p, ok := b.(interface{ Validate() error }); ok {
		return p.Validate()
	}
	return nil
}
