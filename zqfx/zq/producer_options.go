package zq

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// DefaultDedupeWindow is how long an id that the caller chose is remembered after its ack.
const DefaultDedupeWindow = time.Hour

// MaxDedupeWindow bounds WithDedupeWindow.
const MaxDedupeWindow = 365 * 24 * time.Hour

// ProducerOption configures a Producer.
type ProducerOption interface{ applyProducer(*producerConfig) }

type producerOption func(*producerConfig)

func (f producerOption) applyProducer(c *producerConfig) { f(c) }

type producerConfig struct {
	window      time.Duration
	maxBody     int
	replicas    int
	replicaWait time.Duration
	strict      bool
	middleware  []SendMiddleware
}

func defaultProducerConfig() producerConfig {
	return producerConfig{window: DefaultDedupeWindow, maxBody: DefaultMaxBody}
}

func (c *producerConfig) validate() error {
	var faults []error
	if c.window < 0 || c.window > MaxDedupeWindow {
		faults = append(faults, invalid("dedupe window", c.window, fmt.Sprintf("0 to %s", MaxDedupeWindow)))
	}
	if c.maxBody < 1 || c.maxBody > HardMaxBody {
		faults = append(faults, invalid("max body", c.maxBody, fmt.Sprintf("1 to %d bytes", HardMaxBody)))
	}
	if c.replicas < 0 || c.replicas > 100 {
		faults = append(faults, invalid("min replicas", c.replicas, "0 to 100"))
	}
	if c.replicas > 0 && (c.replicaWait < time.Millisecond || c.replicaWait > time.Minute) {
		faults = append(faults, invalid("min replicas wait", c.replicaWait, "1ms to 1m"))
	}
	if slices.ContainsFunc(c.middleware, func(m SendMiddleware) bool { return m == nil }) {
		faults = append(faults, invalid("send middleware", "nil", "a SendMiddleware"))
	}
	return errors.Join(faults...)
}

// WithDedupeWindow sets how long an id that the caller chose is remembered after its ack: DefaultDedupeWindow
// unless set, 0 for not at all, at most MaxDedupeWindow. While the message is in the queue, dead or alive,
// its id is always taken.
func WithDedupeWindow(d time.Duration) ProducerOption {
	return producerOption(func(c *producerConfig) { c.window = d })
}

// WithMaxBody sets the largest body in bytes: DefaultMaxBody unless set, at most HardMaxBody.
func WithMaxBody(bytes int) ProducerOption {
	return producerOption(func(c *producerConfig) { c.maxBody = bytes })
}

// MinReplicas makes each enqueue wait until n replicas have it, at most for within. With fewer in time the
// receipt comes with a *ReplicationError. Redis's WAIT confirms receipt, not a quorum: it narrows the window
// of loss on failover to what Redis's failover itself can lose.
func MinReplicas(n int, within time.Duration) ProducerOption {
	return producerOption(func(c *producerConfig) { c.replicas, c.replicaWait = n, within })
}

// Strict gives every message without a key the same one, so that the whole queue is one order. A message
// that has another key is refused.
func Strict() ProducerOption {
	return producerOption(func(c *producerConfig) { c.strict = true })
}

// StrictKey is the ordering key of a Strict producer's messages.
const StrictKey = "strict"
