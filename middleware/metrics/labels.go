package metrics

import (
	"strings"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/zqueue/zqueue/middleware/internal/semconv"
)

// labels are all attributes there are; an empty one is left out.
type labels struct {
	queue, kind, name        string // destination, type and name of the operation
	failure                  string // class of an error
	result                   string // of an enqueue
	outcome                  string // of a run
	reason, skip, call, what string // of a dead letter, of idempotency, of a call to Redis; a state
}

// sets keeps the attribute sets that are in use: there are few, and to build one costs more than to count.
type sets struct{ made sync.Map }

func (s *sets) of(l labels) metric.MeasurementOption {
	if o, ok := s.made.Load(l); ok {
		return o.(metric.MeasurementOption) // nothing else is in it
	}
	o, _ := s.made.LoadOrStore(l, metric.WithAttributeSet(l.set()))
	return o.(metric.MeasurementOption) // nothing else is in it
}

func (l labels) set() attribute.Set {
	var attrs []attribute.KeyValue
	for _, a := range []struct{ key, value string }{
		{semconv.DestinationNameKey, l.queue},
		{semconv.OperationTypeKey, l.kind},
		{semconv.OperationNameKey, l.name},
		{semconv.ErrorTypeKey, l.failure},
		{semconv.EnqueueResultKey, l.result},
		{semconv.OutcomeKey, l.outcome},
		{semconv.DeadReasonKey, l.reason},
		{semconv.IdempotencyOutcomeKey, l.skip},
		{semconv.CallKey, l.call},
		{semconv.StateKey, l.what},
	} {
		if a.value != "" {
			attrs = append(attrs, attribute.String(a.key, strings.ToValidUTF8(a.value, "\uFFFD")))
		}
	}
	return attribute.NewSet(append(attrs, attribute.String(semconv.SystemKey, semconv.System))...)
}

// maxWords is how many different words from outside become values of one attribute.
const maxWords = 50

// words lets the first maxWords different words through, and calls all others "other". The zero value is ready.
type words struct {
	known sync.Map
	count atomic.Int64
}

func (w *words) bounded(word string) string {
	if word == "" {
		return semconv.Other
	}
	if _, ok := w.known.Load(word); ok {
		return word
	}
	if w.count.Load() >= maxWords {
		return semconv.Other
	}
	if _, there := w.known.LoadOrStore(word, true); !there && w.count.Add(1) > maxWords {
		w.known.Delete(word) // several came for the last place at once
		return semconv.Other
	}
	return word
}
