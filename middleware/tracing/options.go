package tracing

import (
	"errors"
	"fmt"
	"strconv"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Bounds of the baggage that goes into a message, in bytes as written into the header.
const (
	DefaultBaggage = 1 << 10
	MaxBaggage     = 8 << 10
)

// Option configures New.
type Option interface{ apply(*config) }

type option func(*config)

func (f option) apply(c *config) { f(c) }

type config struct {
	provider   trace.TracerProvider
	propagator propagation.TextMapPropagator
	baggage    int
	child      bool
	keys       bool
	create     bool
	batches    bool
	faults     []error
}

// WithTracerProvider sets who makes the spans. Without it, or with nil, it is the global provider as it is when the
// first span is made.
func WithTracerProvider(p trace.TracerProvider) Option {
	return option(func(c *config) { c.provider = p })
}

// WithPropagator sets how a context is written into headers: W3C trace context and baggage unless set. The global
// propagator is not asked, for it does nothing until somebody sets it. What a run leaves for the next one is W3C's
// traceparent always.
func WithPropagator(p propagation.TextMapPropagator) Option {
	return option(func(c *config) {
		if c.propagator = p; p == nil {
			c.faults = append(c.faults, invalid("tracing.WithPropagator", "nil", "a propagator"))
		}
	})
}

// WithBaggage bounds the baggage that goes into a message: 1 to MaxBaggage bytes, DefaultBaggage unless set. What
// is beyond is dropped, whole members at a time; the first by name are kept.
func WithBaggage(limit int) Option {
	return option(func(c *config) {
		if c.baggage = limit; limit < 1 || limit > MaxBaggage {
			c.faults = append(c.faults, invalid("tracing.WithBaggage", strconv.Itoa(limit), fmt.Sprintf("1 to %d bytes", MaxBaggage)))
		}
	})
}

// WithoutBaggage puts no baggage into messages and takes none out.
func WithoutBaggage() Option { return option(func(c *config) { c.baggage = 0 }) }

// AsChild makes the span of a run a child of where its message was made, instead of a new root with a link there.
// One trace then shows a message's whole way. A job that sends itself again makes it endless, and a sampler that
// keeps whole traces has to wait for as long as the queue does.
func AsChild() Option { return option(func(c *config) { c.child = true }) }

// WithKeys puts ordering keys on spans. They often are customers' ids, so that is off unless asked for.
func WithKeys() Option { return option(func(c *config) { c.keys = true }) }

// WithCreateSpans says whether each message of a batch has a create span of its own, on unless switched off: then
// a message's runs link to it alone. Without, there is one send span for the batch, to which all their runs link.
func WithCreateSpans(on bool) Option { return option(func(c *config) { c.create = on }) }

// WithBatchSpans says whether claims and settlements have spans of their own, receive and settle, each with links
// to its messages. On unless switched off.
func WithBatchSpans(on bool) Option { return option(func(c *config) { c.batches = on }) }

func newConfig(opts []Option) (*config, error) {
	c := &config{
		propagator: propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}),
		baggage:    DefaultBaggage, create: true, batches: true,
	}
	for _, o := range opts {
		if o != nil {
			o.apply(c)
		}
	}
	return c, errors.Join(c.faults...)
}

func invalid(field, value, want string) error {
	return &zq.InvalidError{Field: field, Value: value, Want: want}
}
