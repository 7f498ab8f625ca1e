package idempotency

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Reasons of the dead letters that this middleware makes.
const (
	ReasonNoKey  = "no_idempotency_key"  // no business key, and the option RequireKey
	ReasonBadKey = "bad_idempotency_key" // a business key longer than MaxKey
)

// Key finds the business key of a message. The From functions make one; it is immutable and safe for concurrent use.
// It should not change when the message is delivered again.
type Key struct {
	find  func(context.Context, *zq.Delivery) (string, error)
	fault error
}

// FromID takes the message's id. This keeps a message from running again whose id is enqueued anew after the
// producer's dedupe window.
func FromID() Key {
	return Key{find: func(_ context.Context, d *zq.Delivery) (string, error) { return d.ID, nil }}
}

// FromHeader takes the value of a header. A message without it has no key.
func FromHeader(name string) Key {
	k := Key{find: func(_ context.Context, d *zq.Delivery) (string, error) { return d.Headers[name], nil }}
	if name == "" {
		k.fault = invalid("idempotency.FromHeader name", strconv.Quote(name), "a header's name")
	}
	return k
}

// FromKind takes a field of the payload. A message of another kind has no key; one that cannot be decoded is a dead
// letter. The payload is decoded once more by the handler. field must be safe for concurrent use.
func FromKind[T any](kind zq.Kind[T], field func(T) string) Key {
	if field == nil {
		return Key{fault: invalid("idempotency.FromKind field", "nil", "a function")}
	}
	binding := kind.Handle(func(context.Context, *zq.Delivery, T) error { return nil })
	if _, err := zq.NewMux(binding); err != nil {
		return Key{fault: fmt.Errorf("idempotency.FromKind: %w", err)}
	}
	names := binding.Names()
	return Key{find: func(_ context.Context, d *zq.Delivery) (string, error) {
		if !slices.Contains(names, d.Kind) {
			return "", nil
		}
		v, err := kind.Decode(d)
		if err != nil {
			return "", err
		}
		return field(v), nil
	}}
}

// FromFunc takes what f returns; "" means no key. An error decides about the message as a handler's does, so it
// counts as an attempt unless it is a zq.Postpone. f must be safe for concurrent use.
func FromFunc(f func(ctx context.Context, d *zq.Delivery) (string, error)) Key {
	if f == nil {
		return Key{fault: invalid("idempotency.FromFunc", "nil", "a function")}
	}
	return Key{find: f}
}

// check is what is wrong with the way to find keys.
func (k Key) check() error {
	if k.find == nil && k.fault == nil {
		return invalid("idempotency key", "the zero Key", "one of the From functions")
	}
	return k.fault
}

// of is the business key of a message.
func (k Key) of(ctx context.Context, d *zq.Delivery) (string, error) {
	key, err := k.find(ctx, d)
	if err != nil {
		return "", err
	}
	if len(key) > MaxKey {
		fault := invalid("idempotency key", fmt.Sprintf("%d bytes", len(key)), fmt.Sprintf("at most %d bytes", MaxKey))
		return "", zq.Dead(ReasonBadKey, fault)
	}
	return key, nil
}
