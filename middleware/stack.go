package middleware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Env is what a plan is built with, for one queue. A layer's own options come before it.
type Env struct {
	// Queue names the queue. Sequence, RateLimit and the watch of Metrics need it.
	Queue string
	// Redis holds what layers keep. Sequence, Idempotency and RateLimit need it.
	Redis redis.UniversalClient
	// TracerProvider and MeterProvider are the global ones unless set.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
	// Logger is slog.Default unless set.
	Logger *slog.Logger
	// Inspector makes metrics show the queue's depth and age too; without one it does not.
	Inspector *zq.Inspector
}

// Stack is a built plan. It is for one queue, and for all of its producers and consumers in this process.
type Stack struct {
	// Chain goes around the handler.
	Chain zq.Chain
	// Send goes to the queue's producers, with zq.WithSendMiddleware.
	Send []zq.SendMiddleware
	// Observers go to the queue's consumers, in their configuration.
	Observers []zq.Observer
	// Names are those of the layers, outermost first, for a log.
	Names []string
	// Close ends what building started; nil if there is nothing to end. Call it once, after the consumers.
	Close func(context.Context) error
}

// Build makes the plan a stack. It lists all that is wrong with the plan and with its layers, and does no I/O.
// Layers of one plan that was built twice share nothing.
func (p Plan) Build(env Env) (Stack, error) {
	if err := p.Validate(); err != nil {
		return Stack{}, errors.Join(err, p.layerFaults(env))
	}
	parts, err := p.parts(env)
	if err != nil {
		return Stack{}, err
	}
	s := Stack{Names: p.Names()}
	var open []func() (closer, error)
	for _, pt := range parts {
		if pt.mw != nil {
			s.Chain = append(s.Chain, pt.mw)
		}
		if pt.send != nil {
			s.Send = append(s.Send, pt.send)
		}
		if pt.observer != nil {
			s.Observers = append(s.Observers, *pt.observer)
		}
		if pt.open != nil {
			open = append(open, pt.open)
		}
	}
	s.Close, err = openAll(open)
	if err != nil {
		return Stack{}, err
	}
	return s, nil
}

// layerFaults are those of the layers alone, for a plan that has others.
func (p Plan) layerFaults(env Env) error {
	_, err := p.parts(env)
	return err
}

// parts builds the layers, the outermost first: inner ones report to them.
func (p Plan) parts(env Env) ([]part, error) {
	at := &site{Env: env.filled()}
	var parts []part
	var faults []error
	for _, l := range p.layers {
		if l.build == nil {
			continue // told by Validate
		}
		made, err := l.build(at)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", l.Name(), err))
		}
		parts = append(parts, made)
	}
	return parts, errors.Join(faults...)
}

// openAll starts what must be ended, and gives nil if there is nothing.
func openAll(open []func() (closer, error)) (func(context.Context) error, error) {
	var started []closer
	closeAll := func(context.Context) error {
		var faults []error
		for i := len(started) - 1; i >= 0; i-- {
			faults = append(faults, started[i]())
		}
		return errors.Join(faults...)
	}
	for _, fn := range open {
		end, err := fn()
		if err != nil {
			return nil, errors.Join(err, closeAll(context.Background()))
		}
		if end != nil {
			started = append(started, end)
		}
	}
	if len(started) == 0 {
		return nil, nil
	}
	return closeAll, nil
}

func (e Env) filled() Env {
	if e.TracerProvider == nil {
		e.TracerProvider = otel.GetTracerProvider()
	}
	if e.MeterProvider == nil {
		e.MeterProvider = otel.GetMeterProvider()
	}
	if e.Logger == nil {
		e.Logger = slog.Default()
	}
	return e
}
