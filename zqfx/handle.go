package zqfx

import (
	"context"
	"fmt"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Typed handles the messages of one kind, their payload decoded. It may run more than once for a message, and
// must be safe for concurrent use; what it returns decides, as with zq.Handler.
type Typed[T any] interface {
	Handle(ctx context.Context, d *zq.Delivery, v T) error
}

// HandleOption is a setting of a handler's registration.
type HandleOption interface{ applyHandle(*handleConfig) }

type handleConfig struct{ instance instance }

// handlerDecl is a handler as it was declared, before there is one.
type handlerDecl struct {
	queue string
	names []string // its kind's name and aliases; none for a raw handler
	at    origin
}

func (d *handlerDecl) raw() bool { return len(d.names) == 0 }

// String is the call that declared it.
func (d *handlerDecl) String() string {
	if d.raw() {
		return fmt.Sprintf("HandleRaw(%q)", d.queue)
	}
	return fmt.Sprintf("Handle(%q, %q)", d.queue, d.names[0])
}

// builtHandler is a declared handler once it is constructed.
type builtHandler struct {
	decl    *handlerDecl
	binding zq.Binding // unless raw
	raw     zq.Handler
}

// Handle makes constructor's result the handler of a kind in a queue. constructor is a func(dependencies…) H or
// (H, error), an fx.In struct among the dependencies included, where H is a Typed[T] or a
// func(context.Context, *zq.Delivery, T) error. Another one is an error of the application, with the line that
// called Handle, also for fx.ValidateApp.
//
// What the constructor depends on is stopped after the handlers have drained: fx stops in reverse order of
// construction, and the consumers depend on the handlers. That holds for dependencies alone; what a handler
// reaches by other ways may be closed under it.
//
// The constructor's result is private to this registration. Its own constructor may be registered for several
// queues; each gets a handler of its own.
func Handle[T any](queue string, kind zq.Kind[T], constructor any, opts ...HandleOption) fx.Option {
	d := &handlerDecl{queue: queue, names: kindNames(kind), at: callerOrigin()}
	if err := kindFault(kind); err != nil {
		return fx.Error(d.at.fault(d.String(), err))
	}
	type function = func(context.Context, *zq.Delivery, T) error
	return registerConstructor(d, opts, constructor, shapeOf[Typed[T], function](), func(v any) builtHandler {
		if h, ok := v.(Typed[T]); ok {
			return builtHandler{decl: d, binding: kind.Handle(h.Handle)}
		}
		return builtHandler{decl: d, binding: kind.Handle(convert[function](v))}
	})
}

// HandleFunc makes fn the handler of a kind in a queue. fn is checked by the compiler; one that needs
// dependencies is returned by a constructor, see Handle.
func HandleFunc[T any](
	queue string, kind zq.Kind[T], fn func(ctx context.Context, d *zq.Delivery, v T) error, opts ...HandleOption,
) fx.Option {
	d := &handlerDecl{queue: queue, names: kindNames(kind), at: callerOrigin()}
	if err := kindFault(kind); err != nil {
		return fx.Error(d.at.fault(d.String(), err))
	}
	if fn == nil {
		return fx.Error(d.at.fault(d.String(), invalid("handler", "nil", "a function")))
	}
	return register(d, opts, func(i instance) fx.Option {
		built := builtHandler{decl: d, binding: kind.Handle(fn)}
		return fx.Provide(fx.Annotated{Group: i.group(groupBuilt), Target: func() builtHandler { return built }})
	})
}

// HandleRaw makes constructor's result the handler of all messages of a queue, whatever their kind: plain members
// that redis-cli or another language put there by ZADD, or payloads that are decoded elsewhere. The result is a
// zq.Handler or a func(context.Context, *zq.Delivery) error; all else is as with Handle. A queue with a raw
// handler has no other.
func HandleRaw(queue string, constructor any, opts ...HandleOption) fx.Option {
	d := &handlerDecl{queue: queue, at: callerOrigin()}
	type function = func(context.Context, *zq.Delivery) error
	return registerConstructor(d, opts, constructor, shapeOf[zq.Handler, function](), func(v any) builtHandler {
		if h, ok := v.(zq.Handler); ok {
			return builtHandler{decl: d, raw: h}
		}
		return builtHandler{decl: d, raw: zq.HandlerFunc(convert[function](v))}
	})
}

// registerConstructor registers what the constructor gives, if that has the shape.
func registerConstructor(
	d *handlerDecl, opts []HandleOption, constructor any, s shape, build func(any) builtHandler,
) fx.Option {
	result, err := s.resultOf(constructor)
	if err != nil {
		return fx.Error(d.at.fault(d.String(), err))
	}
	return register(d, opts, func(i instance) fx.Option {
		// A name, for the same type may be provided by the application; private, for it is nobody else's.
		name := "zqfx handler of " + d.at.base()
		missing := d.at.fault(d.String(), invalid("constructor's result", "nil", "a handler"))
		return fx.Options(
			fx.Provide(fx.Annotated{Name: name, Target: constructor}, fx.Private),
			fx.Provide(fx.Annotate(adapter(result, missing, build), fx.ParamTags(`name:"`+name+`"`),
				fx.ResultTags(i.groupTag(groupBuilt)))),
		)
	})
}

// register declares the handler and provides it.
func register(d *handlerDecl, opts []HandleOption, provide func(instance) fx.Option) fx.Option {
	var c handleConfig
	for _, o := range opts {
		o.applyHandle(&c)
	}
	var faults []fx.Option
	for _, err := range []error{c.instance.fault(), queueFault(d.queue)} {
		if err != nil {
			faults = append(faults, fx.Error(d.at.fault(d.String(), err)))
		}
	}
	if len(faults) > 0 {
		return fx.Options(faults...)
	}
	orphan := d.at.fault(d.String(), errNoModule(c.instance))
	return fx.Module("zqfx."+d.String(), declare(c.instance, groupHandlers, d, orphan), provide(c.instance))
}

// kindNames are the name and aliases of a kind.
func kindNames[T any](kind zq.Kind[T]) []string { return kind.Handle(nil).Names() }

// kindFault is set for a kind that nothing can be sent or handled with.
func kindFault[T any](kind zq.Kind[T]) error {
	_, err := zq.NewMux(kind.Handle(func(context.Context, *zq.Delivery, T) error { return nil }))
	return err
}
