package zqfx

import (
	"reflect"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/middleware"
)

// ChainFrom is Chain for a chain whose layers have dependencies, such as a hook that writes to a database:
// constructor is a func(dependencies…) B or (B, error), an fx.In struct among the dependencies included, where B is
// a Builder such as middleware.Plan. Another one is an error of the application, with the line that called
// ChainFrom, also for fx.ValidateApp.
//
// What the constructor depends on is stopped after the consumers. That may be a producer of the instance, for a hook
// that sends: it sends once the application is built.
func ChainFrom(constructor any, opts ...ChainOption) fx.Option {
	c := chainConfigOf(opts)
	late := &lateChain{}
	d := chainDecl{call: "ChainFrom", builder: late, queue: c.queue, at: callerOrigin()}
	result, err := shape{object: reflect.TypeFor[Builder]()}.resultOf(constructor)
	declared := c.declare(d, err)
	if err != nil || c.instance.fault() != nil {
		return declared
	}
	name := "zqfx chain of " + d.at.base()
	missing := d.at.fault(d.String(), invalid("constructor's result", "nil", "a Builder"))
	build := func(v any) builtChain { return builtChain{late, v.(Builder)} }
	return fx.Module("zqfx."+d.String(), declared,
		fx.Provide(fx.Annotated{Name: name, Target: constructor}, fx.Private),
		fx.Provide(fx.Annotate(adapter(result, missing, build), fx.ParamTags(`name:"`+name+`"`),
			fx.ResultTags(c.instance.groupTag(groupLate)))),
	)
}

// lateChain is a chain that a constructor gives.
type lateChain struct{ built Builder }

// builtChain is what the constructor gave.
type builtChain struct {
	late    *lateChain
	builder Builder
}

// Build builds the chain that was given, whose order is checked only now.
func (c *lateChain) Build(env middleware.Env) (middleware.Stack, error) { return c.built.Build(env) }
