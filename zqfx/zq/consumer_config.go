package zq

import (
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"strconv"
	"time"
)

// FailurePolicy says what a failed message of a key means for those behind it.
type FailurePolicy int

const (
	// BlockKey keeps the others waiting until the failed one is decided: order holds.
	BlockKey FailurePolicy = iota
	// SkipKey lets the others go on; the failed one comes back when it is due, out of order.
	SkipKey
)

// DeathPolicy says what a dead letter means for the messages behind it in its key.
type DeathPolicy int

const (
	// Continue goes on with the next message of the key.
	Continue DeathPolicy = iota
	// HaltKey stops the key until an operator resumes it (Inspector.ResumeKey).
	HaltKey
	// DeadLetterKey sends the rest of the key's lane to the dead letters too, with reason ReasonKey.
	DeadLetterKey
)

const (
	// Unlimited as MaxRun lets a handler run as long as it likes.
	Unlimited = -1
	// NoClaimAhead as ClaimAhead claims only what a free handler takes at once.
	NoClaimAhead = -1
)

// ConsumerConfig configures a Consumer. The zero value is good; a zero field means its default.
type ConsumerConfig struct {
	// Concurrency is how many handlers run at once: 1 to 10,000, default 10.
	Concurrency int
	// ClaimAhead bounds how many messages wait in this process for a free handler: up to 10,000, default
	// 1,000, NoClaimAhead for none. Less is claimed when handlers are slow: about 100 ms of work.
	ClaimAhead int
	// KeyPrefetch bounds how many messages of one key a claim takes: 1 to 1,000, default 256. Less when slow.
	KeyPrefetch int
	// Lease is how long a claim holds without a heartbeat, and so how long a dead worker's messages wait:
	// MinLease to MaxLease, default 30 s. Heartbeats go out every third of it.
	Lease time.Duration
	// MaxAttempts is how many runs a message has before it is a dead letter: 1 to 1,000,000, default 10.
	MaxAttempts int
	// MaxLosses is how many workers may die while they hold a message alone: 1 to 1,000, default 3.
	MaxLosses int
	// MaxRun bounds one run of a handler: from 1 ms, default 1 h, Unlimited for no bound. Its context then
	// ends with ErrTimeout.
	MaxRun time.Duration
	// Grace is how long a handler has to return after its context has ended: from 1 ms, default 5 s. After
	// that its message is taken from it.
	Grace time.Duration
	// DrainTime is how long a stopping consumer lets handlers finish: up to a day, default 20 s, and at least 1 ms.
	DrainTime time.Duration
	// RetryDelay is the pause before the next attempt: from 1 s doubling to 5 min by default, with jitter.
	// It must be safe for concurrent use and is bounded to [0, MaxDelay].
	RetryDelay func(d *Delivery, err error) time.Duration
	// OnFailure is BlockKey unless set.
	OnFailure FailurePolicy
	// OnDeath is Continue unless set.
	OnDeath DeathPolicy
	// ConfirmEach waits for the record of each outcome before the next message of its key starts: a crash
	// then re-runs one message of a key at most. It costs a round trip a message.
	ConfirmEach bool
	// DeadRetention and DeadMax bound the dead letters: at least a minute and one, default 90 days and
	// 100,000. The oldest go first, and are counted as purged.
	DeadRetention time.Duration
	DeadMax       int
	// DedupeMax bounds the ids that are remembered after their ack: at least 1,000, default 10,000,000. Beyond it those
	// whose window ends next are forgotten early, and counted (Counters.Forgotten).
	DedupeMax int
	// Logger gets changes of state and what nobody else can be told; slog.Default unless set. Never bodies,
	// keys or headers.
	Logger *slog.Logger
	// Observers are told what the consumer does; see Observer.
	Observers []Observer
}

// OrderedConfig configures an ordered consumer. It has what ConsumerConfig has, but for what breaks order.
type OrderedConfig struct {
	Concurrency   int
	KeyPrefetch   int
	Lease         time.Duration
	MaxAttempts   int
	MaxLosses     int
	MaxRun        time.Duration
	Grace         time.Duration
	DrainTime     time.Duration
	RetryDelay    func(d *Delivery, err error) time.Duration
	OnDeath       DeathPolicy
	ConfirmEach   bool
	DeadRetention time.Duration
	DeadMax       int
	DedupeMax     int
	Logger        *slog.Logger
	Observers     []Observer
}

func (c OrderedConfig) config() ConsumerConfig {
	return ConsumerConfig{
		Concurrency: c.Concurrency, KeyPrefetch: c.KeyPrefetch, Lease: c.Lease, MaxAttempts: c.MaxAttempts,
		MaxLosses: c.MaxLosses, MaxRun: c.MaxRun, Grace: c.Grace, DrainTime: c.DrainTime, RetryDelay: c.RetryDelay,
		OnFailure: BlockKey, OnDeath: c.OnDeath, ConfirmEach: c.ConfirmEach, DeadRetention: c.DeadRetention,
		DeadMax: c.DeadMax, DedupeMax: c.DedupeMax, Logger: c.Logger, Observers: c.Observers,
	}
}

// withDefaults fills the zero fields.
func (c ConsumerConfig) withDefaults() ConsumerConfig {
	orInt := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	orTime := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	orInt(&c.Concurrency, 10)
	orInt(&c.ClaimAhead, 1000)
	orInt(&c.KeyPrefetch, 256)
	orInt(&c.MaxAttempts, 10)
	orInt(&c.MaxLosses, 3)
	orInt(&c.DeadMax, 100_000)
	orInt(&c.DedupeMax, 10_000_000)
	orTime(&c.Lease, 30*time.Second)
	orTime(&c.MaxRun, time.Hour)
	orTime(&c.Grace, 5*time.Second)
	orTime(&c.DrainTime, 20*time.Second)
	orTime(&c.DeadRetention, 90*24*time.Hour)
	if c.RetryDelay == nil {
		c.RetryDelay = DefaultRetryDelay
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// validate lists everything out of range. It is called after withDefaults.
func (c *ConsumerConfig) validate() error {
	var faults []error
	number := func(field string, v, least, most int) {
		if v < least || v > most {
			faults = append(faults, invalid("config."+field, v, fmt.Sprintf("%d to %d", least, most)))
		}
	}
	span := func(field string, v, least, most time.Duration) {
		if v < least || v > most {
			faults = append(faults, invalid("config."+field, v, fmt.Sprintf("%s to %s", least, most)))
		}
	}
	number("Concurrency", c.Concurrency, 1, 10_000)
	number("ClaimAhead", c.ClaimAhead, NoClaimAhead, 10_000)
	number("KeyPrefetch", c.KeyPrefetch, 1, 1000)
	number("MaxAttempts", c.MaxAttempts, 1, 1_000_000)
	number("MaxLosses", c.MaxLosses, 1, 1000)
	number("DeadMax", c.DeadMax, 1, 1<<31-1)
	number("DedupeMax", c.DedupeMax, 1000, 1<<31-1)
	span("Lease", c.Lease, MinLease, MaxLease)
	if c.MaxRun != Unlimited {
		span("MaxRun", c.MaxRun, time.Millisecond, MaxDelay)
	}
	span("Grace", c.Grace, time.Millisecond, 24*time.Hour)
	span("DrainTime", c.DrainTime, time.Millisecond, 24*time.Hour)
	span("DeadRetention", c.DeadRetention, time.Minute, MaxDelay)
	if c.OnFailure != BlockKey && c.OnFailure != SkipKey {
		faults = append(faults, invalid("config.OnFailure", int(c.OnFailure), "BlockKey or SkipKey"))
	}
	if c.OnDeath.wire() == "" {
		faults = append(faults, invalid("config.OnDeath", int(c.OnDeath), "Continue, HaltKey or DeadLetterKey"))
	}
	return errors.Join(faults...)
}

// wire is the policy's name in the scripts, "" for none.
func (p DeathPolicy) wire() string {
	switch p {
	case Continue:
		return "continue"
	case HaltKey:
		return "halt"
	case DeadLetterKey:
		return "key"
	}
	return ""
}

// rules are the parts of a configuration that decide about a delivery.
type rules struct {
	maxAttempts int
	delay       func(d *Delivery, err error) time.Duration
}

// Bounds of the default delay between attempts.
const (
	firstRetryDelay = time.Second
	mostRetryDelay  = 5 * time.Minute
)

// DefaultRetryDelay is min(5 min, 1 s · 2^(attempt−1)), less up to a quarter of it that depends on the
// message's id and attempt alone: the same decision has the same delay, different messages spread.
func DefaultRetryDelay(d *Delivery, _ error) time.Duration {
	delay := mostRetryDelay
	if n := d.Attempt - 1; n < 9 { // 2^9 s is beyond the cap
		delay = min(mostRetryDelay, firstRetryDelay<<max(n, 0))
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(d.ID))
	_, _ = h.Write(strconv.AppendInt(nil, int64(d.Attempt), 10))
	return delay - time.Duration(h.Sum64()%uint64(delay/4))
}
