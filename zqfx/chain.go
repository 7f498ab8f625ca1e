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
func PlainChain(chain zq.Chain) Builder { return plainChain(chain) }

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
	builder Builder
	queue   string // "" for all that have none of their own
	at      origin
}

// String is the call that declared it.
func (d *chainDecl) String() string {
	if d.queue == "" {
		return "Chain(…)"
	}
	return fmt.Sprintf("Chain(…, ForQueue(%q))", d.queue)
}

// Chain sets the chain around the handlers of the instance's queues, or of one queue. It is one value, for its
// order matters, and the order of values that several parts of an application provide is not defined. Two chains
// for the same queues are an error. Without any the chain is middleware.Standard().
func Chain(b Builder, opts ...ChainOption) fx.Option {
	var c chainConfig
	for _, o := range opts {
		o.applyChain(&c)
	}
	d := chainDecl{builder: b, queue: c.queue, at: callerOrigin()}
	var faults []fx.Option
	if isNil(b) {
		if _, plain := b.(plainChain); !plain { // an empty chain is one
			faults = append(faults, fx.Error(d.at.fault(d.String(), invalid("chain", "nil", "a Builder, such as middleware.Standard()"))))
		}
	}
	if err := c.instance.fault(); err != nil {
		faults = append(faults, fx.Error(d.at.fault(d.String(), err)))
	}
	if len(faults) > 0 {
		return fx.Options(faults...)
	}
	return declare(c.instance, groupChains, d)
}
