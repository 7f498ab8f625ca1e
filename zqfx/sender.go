package zqfx

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// SenderOf sends one kind of message to one queue. It is safe for concurrent use.
type SenderOf[T any] struct {
	enqueuer zq.Enqueuer
	kind     zq.Kind[T]
}

// NewSender makes a sender without an application, such as one with a stand-in for tests.
func NewSender[T any](p zq.Enqueuer, kind zq.Kind[T]) *SenderOf[T] {
	return &SenderOf[T]{enqueuer: p, kind: kind}
}

// Send encodes a payload and enqueues it; see zq.Producer.Enqueue for what the errors mean.
func (s *SenderOf[T]) Send(ctx context.Context, v T, opts ...zq.MessageOption) (zq.Receipt, error) {
	return s.kind.Send(ctx, s.enqueuer, v, opts...)
}

// SenderOption is a setting of a sender.
type SenderOption interface{ applySender(*senderConfig) }

type senderConfig struct {
	instance instance
	name     string
}

// Named provides a sender under name:"<name>", where one payload type goes to several queues. name is 1 to 64 of
// [A-Za-z0-9_-].
func Named(name string) SenderOption { return named(name) }

type named string

func (n named) applySender(c *senderConfig) { c.name = string(n) }

// Sender provides a *SenderOf[T] that sends a kind to a queue. The queue may be another service's: it is known
// by this with its defaults, and needs neither Queue nor a handler here.
func Sender[T any](queue string, kind zq.Kind[T], opts ...SenderOption) fx.Option {
	at := callerOrigin()
	var c senderConfig
	for _, o := range opts {
		o.applySender(&c)
	}
	what := fmt.Sprintf("Sender(%q, %q)", queue, kind.Name())
	var faults []fx.Option
	for _, err := range []error{c.instance.fault(), queueFault(queue), kindFault(kind), c.nameFault()} {
		if err != nil {
			faults = append(faults, fx.Error(at.fault(what, err)))
		}
	}
	if len(faults) > 0 {
		return fx.Options(faults...)
	}
	name := cmp.Or(c.name, string(c.instance))
	return fx.Module("zqfx."+what,
		fx.Provide(fx.Annotated{Name: name, Target: func() oneSenderUnlessNamed[T] { return oneSenderUnlessNamed[T]{} }}),
		declare(c.instance, groupQueues, queueDecl{name: queue, at: at}, at.fault(what, errNoModule(c.instance))),
		fx.Provide(fx.Annotate(func(p *Producers) (*SenderOf[T], error) {
			producer, err := p.For(queue)
			if err != nil {
				return nil, err
			}
			return NewSender(producer, kind), nil
		}, fx.ParamTags(c.instance.nameTag()), fx.ResultTags(instance(name).nameTag()))),
	)
}

// oneSenderUnlessNamed is the first that Sender provides: what fx says of a second one names it.
type oneSenderUnlessNamed[T any] struct{}

// nameFault is set for a name that could not stand in a tag.
func (c *senderConfig) nameFault() error {
	if c.name == "" || instanceName.MatchString(c.name) {
		return nil
	}
	return invalid("name", strings.ToValidUTF8(c.name, "?"), "1 to 64 of [A-Za-z0-9_-]")
}
