package zqfx

import (
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Ordered keeps the order of each key whatever happens: what breaks it is refused.
func Ordered() QueueOption { return queueOption(func(s *settings) { s.Ordered = true }) }

// Strict gives the whole queue one order: its producers give each message the same key, and it is Ordered.
func Strict() QueueOption { return queueOption(func(s *settings) { s.Strict = true }) }

// Concurrency is how many handlers of the queue run at once in this process: 1 to 10,000, default 10.
func Concurrency(n int) QueueOption {
	return queueOption(func(s *settings) { s.Concurrency = given(s, "Concurrency", n) })
}

// ClaimAhead bounds how many messages wait in this process for a free handler: up to 10,000, default 1,000,
// zq.NoClaimAhead for none. An ordered queue refuses it.
func ClaimAhead(n int) QueueOption {
	return queueOption(func(s *settings) { s.ClaimAhead = given(s, "ClaimAhead", n) })
}

// KeyPrefetch bounds how many messages of one key a claim takes: 1 to 1,000, default 256.
func KeyPrefetch(n int) QueueOption {
	return queueOption(func(s *settings) { s.KeyPrefetch = given(s, "KeyPrefetch", n) })
}

// MaxAttempts is how many runs a message has before it is a dead letter: 1 to 1,000,000, default 10.
func MaxAttempts(n int) QueueOption {
	return queueOption(func(s *settings) { s.MaxAttempts = given(s, "MaxAttempts", n) })
}

// MaxLosses is how many workers may die while they hold a message alone: 1 to 1,000, default 3.
func MaxLosses(n int) QueueOption {
	return queueOption(func(s *settings) { s.MaxLosses = given(s, "MaxLosses", n) })
}

// Lease is how long a dead worker's messages wait: zq.MinLease to zq.MaxLease, default 30 s.
func Lease(d time.Duration) QueueOption {
	return queueOption(func(s *settings) { s.Lease = given(s, "Lease", d) })
}

// MaxRun bounds one run of a handler: from 1 ms, default 1 h, zq.Unlimited for no bound.
func MaxRun(d time.Duration) QueueOption {
	return queueOption(func(s *settings) { s.MaxRun = given(s, "MaxRun", d) })
}

// Grace is how long a handler has to return after its context has ended: from 1 ms, default 5 s, or less where
// Config.ShutdownTimeout has no room for that.
func Grace(d time.Duration) QueueOption {
	return queueOption(func(s *settings) { s.Grace = given(s, "Grace", d) })
}

// DrainTime is how long handlers may go on when the application stops: by default what Config.ShutdownTimeout
// leaves after Grace and the last words with Redis. It cannot be longer than the shutdown itself.
func DrainTime(d time.Duration) QueueOption {
	return queueOption(func(s *settings) { s.DrainTime = given(s, "DrainTime", d) })
}

// OnFailure is zq.BlockKey unless set. An ordered queue refuses zq.SkipKey.
func OnFailure(p zq.FailurePolicy) QueueOption {
	words := map[zq.FailurePolicy]string{zq.BlockKey: wordBlockKey, zq.SkipKey: wordSkipKey}
	return queueOption(func(s *settings) { s.OnFailure = wordOf(words, p) })
}

// OnDeath is zq.Continue unless set.
func OnDeath(p zq.DeathPolicy) QueueOption {
	words := map[zq.DeathPolicy]string{
		zq.Continue: wordContinue, zq.HaltKey: wordHaltKey, zq.DeadLetterKey: wordDeadLetterKey,
	}
	return queueOption(func(s *settings) { s.OnDeath = wordOf(words, p) })
}

// ConfirmEach waits for the record of each outcome before the next message of its key starts.
func ConfirmEach() QueueOption { return queueOption(func(s *settings) { s.ConfirmEach = true }) }

// DeadRetention is how long dead letters are kept: from a minute, default 90 days.
func DeadRetention(d time.Duration) QueueOption {
	return queueOption(func(s *settings) { s.DeadRetention = given(s, "DeadRetention", d) })
}

// DeadMax is how many dead letters are kept, the youngest: from 1, default 100,000.
func DeadMax(n int) QueueOption {
	return queueOption(func(s *settings) { s.DeadMax = given(s, "DeadMax", n) })
}

// DedupeMax is how many ids are remembered after their ack: from 1,000, default 10,000,000.
func DedupeMax(n int) QueueOption {
	return queueOption(func(s *settings) { s.DedupeMax = given(s, "DedupeMax", n) })
}

// RetryDelay is the pause before the next attempt where the chain does not say; zq.DefaultRetryDelay unless set.
// It must be safe for concurrent use.
func RetryDelay(fn func(d *zq.Delivery, err error) time.Duration) QueueOption {
	return queueOption(func(s *settings) { s.retryDelay = fn })
}

// DedupeWindow is how long an id that the caller chose is remembered after its ack: zq.DefaultDedupeWindow
// unless set, 0 for not at all, at most zq.MaxDedupeWindow.
func DedupeWindow(d time.Duration) QueueOption {
	return queueOption(func(s *settings) {
		if s.DedupeWindow = d; d == 0 {
			s.DedupeWindow = NoDedupe
		}
	})
}

// MaxBody is the largest body in bytes: zq.DefaultMaxBody unless set, at most zq.HardMaxBody.
func MaxBody(bytes int) QueueOption {
	return queueOption(func(s *settings) { s.MaxBody = given(s, "MaxBody", bytes) })
}

// MinReplicas makes each enqueue wait until n replicas have it, at most for within; see zq.MinReplicas.
func MinReplicas(n int, within time.Duration) QueueOption {
	return queueOption(func(s *settings) {
		s.MinReplicas, s.MinReplicasWithin = given(s, "MinReplicas", n), given(s, "MinReplicasWithin", within)
	})
}

// ConsumeHere says whether this process works on the queue. With false it only produces, and the queue needs no
// handler here.
func ConsumeHere(on bool) QueueOption { return queueOption(func(s *settings) { s.Consume = &on }) }

// given refuses a zero that somebody wrote: in QueueConfig it would mean that nothing is set.
func given[N int | time.Duration](s *settings, field string, n N) N {
	if n == 0 {
		s.faults = append(s.faults, invalid(field, n, "another value; without the option it has its default"))
	}
	return n
}

func wordOf[P comparable](words map[P]string, p P) string {
	if w, ok := words[p]; ok {
		return w
	}
	return "an unknown policy"
}
