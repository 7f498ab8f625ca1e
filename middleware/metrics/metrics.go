package metrics

import (
	"context"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel/metric"

	"github.com/zqueue/zqueue/middleware/internal/semconv"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// Metrics are the instruments of this process, for any number of producers, consumers and queues. It is safe for
// concurrent use.
type Metrics struct {
	meter   metric.Meter
	inst    instruments
	sets    sets
	reasons words // of dead letters
	skips   words // outcomes of idempotency
	calls   words

	mu      sync.Mutex
	watched map[string]bool
}

// New makes the metrics of this process. It starts nothing and does no I/O. An error is the provider's.
func New(opts ...Option) (*Metrics, error) {
	cfg := newConfig(opts)
	m := &Metrics{
		meter:   cfg.provider.Meter(semconv.MetricsScope, metric.WithSchemaURL(semconv.SchemaURL)),
		watched: map[string]bool{},
	}
	if err := m.inst.make(m.meter); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return m, nil
}

// Middleware counts the runs in flight, and lets the Observer, from which all else about runs comes, find their spans.
func (m *Metrics) Middleware() zq.Middleware {
	return func(next zq.Handler) zq.Handler {
		return zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
			d.Within(ctx)
			at := m.sets.of(labels{queue: d.Queue})
			m.inst.inflight.Add(ctx, 1, at)
			defer m.inst.inflight.Add(ctx, -1, at) // also when the handler panics
			return next.Handle(ctx, d)
		})
	}
}

// Idempotency counts what became of a message that had, or had not, been seen before: outcome is a word such as
// "skipped".
func (m *Metrics) Idempotency(ctx context.Context, queue, outcome string) {
	m.inst.idempotency.Add(ctx, 1, m.sets.of(labels{queue: queue, skip: m.skips.bounded(outcome)}))
}
