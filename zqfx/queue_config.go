package zqfx

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// NoDedupe as QueueConfig.DedupeWindow keeps no record of an acked id. As a duration in a file it is -1ns.
const NoDedupe = -1

// Words for QueueConfig.OnFailure and OnDeath.
const (
	wordBlockKey      = "block-key"
	wordSkipKey       = "skip-key"
	wordContinue      = "continue"
	wordHaltKey       = "halt-key"
	wordDeadLetterKey = "dead-letter-key"
)

// QueueConfig is what Config says of one queue. A zero field is not set, and then means zq's default; ranges
// are zq's, see zq.ConsumerConfig and the options of zq.NewProducer.
type QueueConfig struct {
	Ordered       bool          `yaml:"ordered"`
	Strict        bool          `yaml:"strict"`
	Concurrency   int           `yaml:"concurrency"`
	ClaimAhead    int           `yaml:"claim_ahead"`
	KeyPrefetch   int           `yaml:"key_prefetch"`
	MaxAttempts   int           `yaml:"max_attempts"`
	MaxLosses     int           `yaml:"max_losses"`
	Lease         time.Duration `yaml:"lease"`
	MaxRun        time.Duration `yaml:"max_run"`
	Grace         time.Duration `yaml:"grace"`
	DrainTime     time.Duration `yaml:"drain_time"`
	OnFailure     string        `yaml:"on_failure"` // block-key or skip-key
	OnDeath       string        `yaml:"on_death"`   // continue, halt-key or dead-letter-key
	ConfirmEach   bool          `yaml:"confirm_each"`
	DeadRetention time.Duration `yaml:"dead_retention"`
	DeadMax       int           `yaml:"dead_max"`
	DedupeMax     int           `yaml:"dedupe_max"`
	// Of the queue's producers.
	DedupeWindow      time.Duration `yaml:"dedupe_window"` // NoDedupe for none
	MaxBody           int           `yaml:"max_body"`      // bytes
	MinReplicas       int           `yaml:"min_replicas"`
	MinReplicasWithin time.Duration `yaml:"min_replicas_within"` // default 1 s
	// Consume says whether this process works on the queue; nil means that it does.
	Consume *bool `yaml:"consume"`
}

// LogValue is what is set, for log/slog.
func (q QueueConfig) LogValue() slog.Value {
	var set []slog.Attr
	for field, v := range reflect.ValueOf(q).Fields() {
		if !v.IsZero() {
			set = append(set, slog.Any(field.Tag.Get("yaml"), reflect.Indirect(v).Interface()))
		}
	}
	return slog.GroupValue(set...)
}

// settings is what a queue has in the end: what the configuration says, and over it what the code says.
type settings struct {
	QueueConfig
	retryDelay func(d *zq.Delivery, err error) time.Duration
	faults     []error // of the code, where a value alone does not show them
}

// ordered tells whether nothing may break the order of a key.
func (s *settings) ordered() bool { return s.Ordered || s.Strict }

// consumes is Consume with its default.
func (s *settings) consumes() bool { return s.Consume == nil || *s.Consume }

// validate lists all that is wrong, as zq's constructors see it and as far as it cannot be told to them.
func (s *settings) validate() error {
	faults := slices.Clone(s.faults)
	if s.ordered() && s.OnFailure == wordSkipKey {
		faults = append(faults, invalid("OnFailure", "SkipKey", "BlockKey in an ordered queue: a skipped message comes back out of order"))
	}
	if s.ordered() && s.ClaimAhead != 0 {
		faults = append(faults, invalid("ClaimAhead", s.ClaimAhead, "nothing in an ordered queue, which chooses it itself"))
	}
	if _, ok := failureOf(s.OnFailure); !ok {
		faults = append(faults, invalid("OnFailure", s.OnFailure, wordBlockKey+" or "+wordSkipKey))
	}
	if _, ok := deathOf(s.OnDeath); !ok {
		faults = append(faults, invalid("OnDeath", s.OnDeath, wordContinue+", "+wordHaltKey+" or "+wordDeadLetterKey))
	}
	nothing := zq.HandlerFunc(func(context.Context, *zq.Delivery) error { return nil })
	_, consumer := zq.NewConsumer(noClient{}, checkedQueue, nothing, s.consumerConfig(nil))
	_, producer := zq.NewProducer(noClient{}, checkedQueue, s.producerOptions()...)
	return errors.Join(append(faults, consumer, producer)...)
}

// consumerConfig is what zq.NewConsumer takes; an ordered queue's is what zq.NewOrderedConsumer makes of it.
func (s *settings) consumerConfig(log *slog.Logger) zq.ConsumerConfig {
	onFailure, _ := failureOf(s.OnFailure)
	onDeath, _ := deathOf(s.OnDeath)
	return zq.ConsumerConfig{
		Concurrency: s.Concurrency, ClaimAhead: s.ClaimAhead, KeyPrefetch: s.KeyPrefetch, Lease: s.Lease,
		MaxAttempts: s.MaxAttempts, MaxLosses: s.MaxLosses, MaxRun: s.MaxRun, Grace: s.Grace, DrainTime: s.DrainTime,
		RetryDelay: s.retryDelay, OnFailure: onFailure, OnDeath: onDeath, ConfirmEach: s.ConfirmEach,
		DeadRetention: s.DeadRetention, DeadMax: s.DeadMax, DedupeMax: s.DedupeMax, Logger: log,
	}
}

// producerOptions are the settings of the queue's producers; what is not set is zq's default.
func (s *settings) producerOptions() []zq.ProducerOption {
	var opts []zq.ProducerOption
	switch {
	case s.DedupeWindow == NoDedupe:
		opts = append(opts, zq.WithDedupeWindow(0))
	case s.DedupeWindow != 0:
		opts = append(opts, zq.WithDedupeWindow(s.DedupeWindow))
	}
	if s.MaxBody != 0 {
		opts = append(opts, zq.WithMaxBody(s.MaxBody))
	}
	if s.MinReplicas != 0 {
		within := s.MinReplicasWithin
		if within == 0 {
			within = time.Second
		}
		opts = append(opts, zq.MinReplicas(s.MinReplicas, within))
	}
	if s.Strict {
		opts = append(opts, zq.Strict())
	}
	return opts
}

func failureOf(word string) (zq.FailurePolicy, bool) {
	switch word {
	case "", wordBlockKey:
		return zq.BlockKey, true
	case wordSkipKey:
		return zq.SkipKey, true
	}
	return zq.BlockKey, false
}

func deathOf(word string) (zq.DeathPolicy, bool) {
	switch word {
	case "", wordContinue:
		return zq.Continue, true
	case wordHaltKey:
		return zq.HaltKey, true
	case wordDeadLetterKey:
		return zq.DeadLetterKey, true
	}
	return zq.Continue, false
}

// noClient lets zq's constructors check what they are given: they do no I/O.
type noClient struct{ redis.UniversalClient }

// checkedQueue is a valid name where another argument is checked.
const checkedQueue = "checked"

// queueFault is set for a name that no queue can have.
func queueFault(name string) error {
	if _, err := zq.NewInspector(noClient{}, name); err != nil {
		return fmt.Errorf("queue %q: %w", name, err)
	}
	return nil
}
