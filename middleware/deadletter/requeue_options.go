package deadletter

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Limits and defaults of a Requeue. A value outside gives a *zq.InvalidError that names the field, the value and the
// range.
const (
	DefaultEvery      = time.Minute
	DefaultMaxReplays = 3
	MaxMaxReplays     = 1_000_000
	DefaultBatch      = 100
	MaxBatch          = 10_000
	DefaultLook       = 10_000
	MaxLook           = 1_000_000
	maxEvery          = 30 * 24 * time.Hour
)

type requeueConfig struct {
	reasons, kinds []string
	minAge, every  time.Duration
	maxReplays     int
	batch, look    int
	dryRun         bool
	replay         []zq.ReplayOption
	now            func() time.Time
	after          func(time.Duration) <-chan time.Time
	logger         *slog.Logger
	faults         []error
}

// RequeueOption configures a Requeue.
type RequeueOption interface{ applyRequeue(*requeueConfig) }

type requeueOption func(*requeueConfig)

func (f requeueOption) applyRequeue(c *requeueConfig) { f(c) }

// Reasons replays dead letters of these reasons alone. Without it all are, which is seldom wise: what is broken for
// good, such as ReasonDecode, dies again. Given several times, all of them count.
func Reasons(reasons ...string) RequeueOption {
	return requeueOption(func(c *requeueConfig) {
		c.reasons = append(c.reasons, reasons...)
		c.faults = append(c.faults, named("deadletter.Reasons", reasons))
	})
}

// Kinds replays messages of these kinds alone. Given several times, all of them count.
func Kinds(kinds ...string) RequeueOption {
	return requeueOption(func(c *requeueConfig) {
		c.kinds = append(c.kinds, kinds...)
		c.faults = append(c.faults, named("deadletter.Kinds", kinds))
	})
}

func named(field string, names []string) error {
	if len(names) == 0 || slices.Contains(names, "") {
		return invalid(field, fmt.Sprintf("%q", names), "at least one name, and none empty")
	}
	return nil
}

// MinAge leaves dead letters alone that died less than d ago: 0 to 30 days, none unless set. When one died is the
// server's time, and how long ago that is, this machine's (see Clock): what the two are apart is added or missing.
func MinAge(d time.Duration) RequeueOption {
	return requeueOption(func(c *requeueConfig) { c.minAge = d })
}

// MaxReplays is how often a message may come back from the dead letters, by whatever way: 1 to MaxMaxReplays,
// DefaultMaxReplays unless set. It counts DeadLetter.Replays, which manual replays raise too.
func MaxReplays(n int) RequeueOption {
	return requeueOption(func(c *requeueConfig) { c.maxReplays = n })
}

// Batch is the most messages that one round replays: 1 to MaxBatch, DefaultBatch unless set.
func Batch(n int) RequeueOption { return requeueOption(func(c *requeueConfig) { c.batch = n }) }

// Look is about the most dead letters that one round reads, bodies included, to find some that pass the filters:
// 1 to MaxLook, DefaultLook unless set. The next round goes on behind them, and after the last one starts anew.
func Look(n int) RequeueOption { return requeueOption(func(c *requeueConfig) { c.look = n }) }

// Every is the pause between two rounds of Run: 1 ms to 30 days, DefaultEvery unless set, less up to a quarter of it
// at random.
func Every(d time.Duration) RequeueOption {
	return requeueOption(func(c *requeueConfig) { c.every = d })
}

// DryRun reports what would be replayed and replays nothing.
func DryRun() RequeueOption { return requeueOption(func(c *requeueConfig) { c.dryRun = true }) }

// AtEnd replays behind what waits now, instead of into the old place: then messages may be overtaken by later ones of
// their key.
func AtEnd() RequeueOption {
	return requeueOption(func(c *requeueConfig) { c.replay = []zq.ReplayOption{zq.ReplayAtEnd()} })
}

// Clock sets what says what time it is, for MinAge, and what waits between rounds, as time.After does. Without it
// these are the machine's. Both must be safe for concurrent use.
func Clock(now func() time.Time, after func(time.Duration) <-chan time.Time) RequeueOption {
	return requeueOption(func(c *requeueConfig) {
		if c.now, c.after = now, after; now == nil || after == nil {
			c.faults = append(c.faults, invalid("deadletter.Clock", "nil", "two functions"))
		}
	})
}

// RequeueLogger gets changes of state: that rounds fail, and that they work again; slog.Default unless set.
func RequeueLogger(l *slog.Logger) RequeueOption {
	return requeueOption(func(c *requeueConfig) { c.logger = l })
}

func newRequeueConfig(opts []RequeueOption) (requeueConfig, error) {
	c := requeueConfig{
		every: DefaultEvery, maxReplays: DefaultMaxReplays, batch: DefaultBatch, look: DefaultLook,
		now: time.Now, after: time.After,
	}
	for _, o := range opts {
		if o != nil {
			o.applyRequeue(&c)
		}
	}
	if c.logger == nil {
		c.logger = slog.Default()
	}
	c.faults = append(c.faults,
		between("deadletter.MinAge", c.minAge, 0, maxEvery),
		between("deadletter.Every", c.every, time.Millisecond, maxEvery),
		within("deadletter.MaxReplays", c.maxReplays, MaxMaxReplays),
		within("deadletter.Batch", c.batch, MaxBatch),
		within("deadletter.Look", c.look, MaxLook),
	)
	return c, errors.Join(c.faults...)
}

func within(field string, n, most int) error {
	if n < 1 || n > most {
		return invalid(field, n, fmt.Sprintf("1 to %d", most))
	}
	return nil
}

// wants tells whether a dead letter passes the filters, but for the cap.
func (c *requeueConfig) wants(l *zq.DeadLetter, now time.Time) bool {
	return (c.reasons == nil || slices.Contains(c.reasons, l.Reason)) &&
		(c.kinds == nil || slices.Contains(c.kinds, l.Message.Kind)) &&
		(c.minAge == 0 || now.Sub(l.DiedAt) >= c.minAge)
}
