package zq

import (
	"context"
	"errors"
	"fmt"
)

// Binding is a kind with its handler. It is a Handler by itself, for a queue of one kind: messages of other
// kinds are dead letters there.
type Binding struct {
	names  []string
	handle HandlerFunc
	err    error
}

// Handle binds a function to the kind. It gets the delivery and the decoded payload, and may run many times.
func (k Kind[T]) Handle(fn func(ctx context.Context, d *Delivery, v T) error) Binding {
	b := Binding{names: append([]string{k.name}, k.aliases...), err: k.err}
	if fn == nil {
		b.err = errors.Join(b.err, invalid("handler of "+k.name, "nil", "a function"))
	}
	b.handle = func(ctx context.Context, d *Delivery) error {
		v, err := k.Decode(d)
		if err != nil {
			return err
		}
		return fn(ctx, d, v)
	}
	return b
}

// Names are the kind's name and its aliases.
func (b Binding) Names() []string { return b.names }

// Handle runs the function, or refuses a message of another kind.
func (b Binding) Handle(ctx context.Context, d *Delivery) error {
	if b.err != nil {
		return b.err
	}
	for _, n := range b.names {
		if n == d.Kind {
			return b.handle(ctx, d)
		}
	}
	return noHandler(d)
}

// Mux chooses the handler by the message's kind. A message of a kind without a handler is a dead letter, its
// bytes untouched, so that it can be replayed once there is one.
type Mux struct {
	handlers map[string]HandlerFunc
}

// NewMux binds several kinds to one queue. Every fault is listed: a name bound twice, an invalid kind.
func NewMux(bindings ...Binding) (*Mux, error) {
	m := &Mux{handlers: make(map[string]HandlerFunc)}
	var faults []error
	for _, b := range bindings {
		if b.err != nil || b.handle == nil {
			faults = append(faults, errors.Join(b.err, emptyBinding(b)))
			continue
		}
		for _, n := range b.names {
			if m.handlers[n] != nil {
				faults = append(faults, invalid("kind", n, "bound once"))
			}
			m.handlers[n] = b.handle
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return m, nil
}

func emptyBinding(b Binding) error {
	if b.handle == nil {
		return invalid("binding", "empty", "made by Kind.Handle")
	}
	return nil
}

// Handle runs the handler of the message's kind.
func (m *Mux) Handle(ctx context.Context, d *Delivery) error {
	h := m.handlers[d.Kind]
	if h == nil {
		return noHandler(d)
	}
	return h(ctx, d)
}

func noHandler(d *Delivery) error {
	return Dead(ReasonNoHandler, fmt.Errorf("no handler for kind %q", d.Kind))
}
