package metrics

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"go.opentelemetry.io/otel/metric"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// DepthSource reads how many messages are where; a zq.Inspector does. It must be safe for concurrent use.
type DepthSource interface {
	Depth(ctx context.Context) (zq.Depth, error)
}

// Watch reports a queue's depth, by state, and the age of its oldest message, until stop. A queue is watched once
// at a time. It does no I/O by itself: a reading is made when somebody collects.
//
// stop ends it. It waits for a reading under way, as long as a scrape would, and gives an error if that goes on; it
// ends by itself once the source returns. stop may be called more than once, with the result of the first call.
func (m *Metrics) Watch(queue string, src DepthSource, opts ...WatchOption) (stop func() error, err error) {
	cfg, err := newWatchConfig(opts)
	if queue == "" {
		err = errors.Join(err, invalid("metrics.Watch queue", "empty", "the name of a queue"))
	}
	if src == nil {
		err = errors.Join(err, invalid("metrics.Watch source", "nil", "a DepthSource"))
	}
	if err != nil {
		return nil, err
	}
	if !m.claimWatch(queue) {
		return nil, invalid("metrics.Watch queue", strconv.Quote(queue), "one that is not watched already")
	}
	r := newReader(cfg, src, func() { m.inst.unread.Add(background(), 1, m.sets.of(labels{queue: queue})) })
	reg, err := m.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		if d, ok := r.read(ctx); ok {
			m.report(o, queue, d)
		}
		return nil
	}, m.inst.depth, m.inst.keys, m.inst.paused, m.inst.oldest)
	if err != nil {
		m.endWatch(queue)
		return nil, fmt.Errorf("metrics: watch %s: %w", queue, err)
	}
	return sync.OnceValue(func() error {
		err := errors.Join(reg.Unregister(), r.close())
		m.endWatch(queue)
		if err != nil {
			return fmt.Errorf("metrics: stop watching %s: %w", queue, err)
		}
		return nil
	}), nil
}

func (m *Metrics) claimWatch(queue string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.watched[queue] {
		return false
	}
	m.watched[queue] = true
	return true
}

func (m *Metrics) endWatch(queue string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.watched, queue)
}

// report gives a reading to whoever collects.
func (m *Metrics) report(o metric.Observer, queue string, d zq.Depth) {
	state := func(g metric.Int64Observable, what string, n int64) {
		o.ObserveInt64(g, n, m.sets.of(labels{queue: queue, what: what}))
	}
	state(m.inst.depth, "pending", d.Pending)
	state(m.inst.depth, "delayed", d.Delayed)
	state(m.inst.depth, "running", d.Running)
	state(m.inst.depth, "suspect", d.Suspect)
	state(m.inst.depth, "dead", d.Dead)
	state(m.inst.keys, "held", d.KeysHeld)
	state(m.inst.keys, "waiting", d.KeysWaiting)
	state(m.inst.keys, "suspect", d.KeysSuspect)
	state(m.inst.keys, "halted", d.KeysHalted)
	paused := int64(0)
	if d.Paused {
		paused = 1
	}
	state(m.inst.paused, "", paused)
	o.ObserveFloat64(m.inst.oldest, d.OldestReady.Seconds(), m.sets.of(labels{queue: queue}))
}
