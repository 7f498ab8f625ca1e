package zq

import (
	"context"
	"fmt"
	"time"
)

// Enqueuer is what sending needs: a Producer, or anything that stands in for one.
type Enqueuer interface {
	Enqueue(ctx context.Context, m Message) (Receipt, error)
}

// Kind ties a name to a payload type and its codec. Both ends share it, usually as a package variable. It is
// immutable and safe for concurrent use. A Kind with an invalid name or option says so at its first use.
type Kind[T any] struct {
	name    string
	aliases []string
	codecs  []Codec // the first encodes
	err     error
}

// KindOption configures a Kind.
type KindOption interface{ applyKind(*kindConfig) }

type kindConfig struct {
	aliases []string
	codecs  []Codec
}

type kindOption func(*kindConfig)

func (f kindOption) applyKind(c *kindConfig) { f(c) }

// WithCodec sets how payloads are encoded, JSON by default. Bodies of the other codecs given by
// AlsoDecodes, and JSON, are still read.
func WithCodec(c Codec) KindOption {
	return kindOption(func(k *kindConfig) { k.codecs = append([]Codec{c}, k.codecs...) })
}

// AlsoDecodes adds codecs of messages that are still on their way.
func AlsoDecodes(codecs ...Codec) KindOption {
	return kindOption(func(k *kindConfig) { k.codecs = append(k.codecs, codecs...) })
}

// WithAliases names what the kind was called before: such messages are handled, new ones have the new name.
func WithAliases(names ...string) KindOption {
	return kindOption(func(k *kindConfig) { k.aliases = append(k.aliases, names...) })
}

// NewKind names a payload type. name is stored with each message, so it outlives renamed Go types.
func NewKind[T any](name string, opts ...KindOption) Kind[T] {
	var cfg kindConfig
	for _, o := range opts {
		o.applyKind(&cfg)
	}
	k := Kind[T]{name: name, aliases: cfg.aliases, codecs: append(cfg.codecs, JSON{})}
	for _, n := range append([]string{name}, cfg.aliases...) {
		if fault := textFault(n, MaxKind); n == "" || fault != "" {
			k.err = invalid("kind", orEmpty(fault), fmt.Sprintf("1 to %d bytes of UTF-8 without control characters", MaxKind))
		}
	}
	for _, c := range cfg.codecs {
		if c == nil {
			k.err = invalid("kind "+name+": codec", "nil", "a Codec")
		}
	}
	return k
}

// Name is the kind's name.
func (k Kind[T]) Name() string { return k.name }

// Message encodes a payload.
func (k Kind[T]) Message(v T, opts ...MessageOption) (Message, error) {
	if k.err != nil {
		return Message{}, k.err
	}
	body, err := k.codecs[0].Marshal(v)
	if err != nil {
		return Message{}, fmt.Errorf("zq: encode %s: %w", k.name, err)
	}
	m := Message{Kind: k.name, ContentType: k.codecs[0].ContentType(), Body: body}
	for _, o := range opts {
		o.applyMessage(&m)
	}
	return m, nil
}

// Send encodes a payload and enqueues it.
func (k Kind[T]) Send(ctx context.Context, p Enqueuer, v T, opts ...MessageOption) (Receipt, error) {
	m, err := k.Message(v, opts...)
	if err != nil {
		return Receipt{}, err
	}
	return p.Enqueue(ctx, m)
}

// Decode reads a delivery's payload by its stored content type. The error is a dead letter's: the bytes will
// not be better next time.
func (k Kind[T]) Decode(d *Delivery) (T, error) { return k.decode(d.ContentType, d.Body) }

// Open reads the payload of a message, such as a dead letter's. It fails as Decode does.
func (k Kind[T]) Open(m Message) (T, error) { return k.decode(m.ContentType, m.Body) }

func (k Kind[T]) decode(contentType string, body []byte) (T, error) {
	var v T
	if k.err != nil {
		return v, k.err
	}
	codec := k.codecs[0]
	if want := mediaType(contentType); want != "" && want != mediaType(codec.ContentType()) {
		codec = nil
		for _, c := range k.codecs {
			if mediaType(c.ContentType()) == want {
				codec = c
				break
			}
		}
	}
	if codec == nil {
		return v, Dead(ReasonDecode, fmt.Errorf("kind %s has no codec for %q", k.name, contentType))
	}
	if err := unmarshal(codec, body, &v); err != nil {
		return v, Dead(ReasonDecode, fmt.Errorf("decode %s: %w", k.name, err))
	}
	return v, nil
}

// unmarshal keeps a codec that panics on hostile bytes from counting as a handler's panic.
func unmarshal(c Codec, data []byte, v any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("codec panicked: %v", p)
		}
	}()
	return c.Unmarshal(data, v)
}

// MessageOption sets a field of a message that a Kind sends.
type MessageOption interface{ applyMessage(*Message) }

type messageOption func(*Message)

func (f messageOption) applyMessage(m *Message) { f(m) }

// WithID chooses the message's id, by which it is deduplicated.
func WithID(id string) MessageOption { return messageOption(func(m *Message) { m.ID = id }) }

// WithKey sets the ordering key.
func WithKey(key string) MessageOption { return messageOption(func(m *Message) { m.Key = key }) }

// WithRoute chooses the partition.
func WithRoute(route string) MessageOption {
	return messageOption(func(m *Message) { m.Route = route })
}

// WithScore sets the place in the order; lower runs first.
func WithScore(score int64) MessageOption {
	return messageOption(func(m *Message) { m.Score = &score })
}

// WithDelay keeps the message back.
func WithDelay(d time.Duration) MessageOption { return messageOption(func(m *Message) { m.Delay = d }) }

// WithDue keeps the message back until an instant.
func WithDue(t time.Time) MessageOption { return messageOption(func(m *Message) { m.Due = t }) }

// WithHeader adds a header.
func WithHeader(name, value string) MessageOption {
	return messageOption(func(m *Message) {
		if m.Headers == nil {
			m.Headers = make(map[string]string)
		}
		m.Headers[name] = value
	})
}
