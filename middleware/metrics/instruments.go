package metrics

import (
	"errors"

	"go.opentelemetry.io/otel/metric"

	"github.com/zqueue/zqueue/middleware/internal/semconv"
)

type instruments struct {
	sent, consumed                metric.Int64Counter
	operation, process, wait, lag metric.Float64Histogram
	outcomes, retries, dead       metric.Int64Counter
	idempotency, lost, failed     metric.Int64Counter
	inflight                      metric.Int64UpDownCounter
	depth, keys, paused           metric.Int64ObservableGauge
	oldest                        metric.Float64ObservableGauge
	unread                        metric.Int64Counter
}

// make makes all instruments and joins what the provider has to say.
func (i *instruments) make(meter metric.Meter) error {
	var faults []error
	counter := func(name, unit, text string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(text))
		faults = append(faults, err)
		return c
	}
	seconds := func(name, text string) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(text),
			metric.WithExplicitBucketBoundaries(semconv.Buckets()...))
		faults = append(faults, err)
		return h
	}
	gauge := func(name, unit, text string) metric.Int64ObservableGauge {
		g, err := meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(text))
		faults = append(faults, err)
		return g
	}
	i.sent = counter(semconv.SentMessages, "{message}", "Messages that a producer sent or tried to send.")
	i.consumed = counter(semconv.ConsumedMessages, "{message}", "Messages given to a handler, once for each run.")
	i.operation = seconds(semconv.OperationDuration, "Duration of calls that send, claim or settle messages.")
	i.process = seconds(semconv.ProcessDuration, "Duration of a handler's run.")
	i.wait = seconds(semconv.MessageWait, "Time from when a message was due until it was claimed for its first run.")
	i.lag = seconds(semconv.ScheduleLag, "The same for delayed messages alone: how late they were claimed.")
	i.outcomes = counter(semconv.Outcomes, "{run}", "Runs by what the consumer decided about their message.")
	i.retries = counter(semconv.Retries, "{message}", "Messages that failed and will run again.")
	i.dead = counter(semconv.DeadLetters, "{message}", "Messages that became dead letters after a run.")
	i.idempotency = counter(semconv.IdempotencyOutcomes, "{message}", "Messages by what idempotency did with them.")
	i.lost = counter(semconv.LeasesLost, "{message}", "Messages whose lease was lost.")
	i.failed = counter(semconv.CallsFailed, "{call}", "Calls of a consumer to Redis that failed.")
	i.unread = counter(semconv.QueueReadFailed, "{read}", "Readings of a queue's depth that failed or took too long.")
	i.depth = gauge(semconv.QueueDepth, "{message}", "Messages in the queue by state. Global: take the maximum.")
	i.keys = gauge(semconv.QueueKeys, "{key}", "Ordering keys by what holds them. Global: take the maximum.")
	i.paused = gauge(semconv.QueuePaused, "{queue}", "1 while nothing is claimed by order of an operator, else 0.")
	var err error
	i.inflight, err = meter.Int64UpDownCounter(semconv.ConsumerInflight,
		metric.WithUnit("{message}"), metric.WithDescription("Runs of handlers under way in this process."))
	faults = append(faults, err)
	i.oldest, err = meter.Float64ObservableGauge(semconv.QueueOldestReady,
		metric.WithUnit("s"), metric.WithDescription("Age of the message that is next in order. Global: take the maximum."))
	return errors.Join(append(faults, err)...)
}
