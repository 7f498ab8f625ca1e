package zq_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// FuzzOptions builds a producer and a consumer of any numbers: each is made, or says by field what is out of
// range. The ranges are those of the documentation, written anew.
func FuzzOptions(f *testing.F) {
	f.Add(0, 0, 0, 0, 0, int64(0), int64(0), int64(0), int64(0), 0, int64(0), 1, 0, int64(0))
	f.Add(-1, -1, -1, -1, -1, int64(-1), int64(-1), int64(-1), int64(-1), -1, int64(-1), -1, -1, int64(-1))
	f.Add(10_000, 10_000, 1000, 1_000_000, 1000, int64(24*time.Hour), int64(time.Hour), int64(time.Second), int64(time.Minute), 2,
		int64(zq.MaxDedupeWindow), zq.HardMaxBody, 100, int64(time.Minute))
	f.Add(math.MaxInt, math.MinInt, math.MaxInt, math.MinInt, math.MaxInt, int64(math.MinInt64), int64(math.MaxInt64), int64(1), int64(1), 3,
		int64(math.MaxInt64), math.MaxInt, 1, int64(1))
	rdb := redis.NewClient(&redis.Options{}) // never used
	f.Cleanup(func() { rdb.Close() })
	f.Fuzz(func(
		t *testing.T, concurrency, ahead, prefetch, attempts, losses int, lease, run, grace, retention int64, policy int,
		window int64, body, replicas int, wait int64,
	) {
		cfg := zq.ConsumerConfig{
			Concurrency: concurrency, ClaimAhead: ahead, KeyPrefetch: prefetch, MaxAttempts: attempts, MaxLosses: losses,
			Lease: time.Duration(lease), MaxRun: time.Duration(run), Grace: time.Duration(grace), DrainTime: time.Duration(grace),
			DeadRetention: time.Duration(retention), OnFailure: zq.FailurePolicy(policy), OnDeath: zq.DeathPolicy(policy),
		}
		bad := outside(concurrency, 1, 10_000) + outside(prefetch, 1, 1000) + outside(attempts, 1, 1_000_000) + outside(losses, 1, 1000) +
			outside(lease, int64(100*time.Millisecond), int64(24*time.Hour)) + 2*outside(grace, int64(time.Millisecond), int64(24*time.Hour)) +
			outside(retention, int64(time.Minute), int64(zq.MaxDelay)) + outside(policy, 0, 1) + outside(policy, 0, 2)
		if ahead != zq.Unlimited {
			bad += outside(ahead, 1, 10_000)
		}
		if run != zq.Unlimited {
			bad += outside(run, int64(time.Millisecond), int64(zq.MaxDelay))
		}
		c, err := zq.NewConsumer(rdb, "q", zq.HandlerFunc(noop), cfg)
		listed(t, c != nil, err, bad)

		bad = outside(window, 0, int64(zq.MaxDedupeWindow)) + outside(replicas, 0, 100)
		if body < 1 || body > zq.HardMaxBody {
			bad++
		}
		if replicas > 0 && (wait < int64(time.Millisecond) || wait > int64(time.Minute)) {
			bad++
		}
		p, err := zq.NewProducer(rdb, "q", zq.WithDedupeWindow(time.Duration(window)), zq.WithMaxBody(body),
			zq.MinReplicas(replicas, time.Duration(wait)))
		listed(t, p != nil, err, bad)
	})
}

// outside is 1 for a number out of its range; zero stands for the default.
func outside[T int | int64](v, least, most T) int {
	if v != 0 && (v < least || v > most) {
		return 1
	}
	return 0
}

// listed expects as many faults as there are, or something that was made.
func listed(t *testing.T, made bool, err error, bad int) {
	t.Helper()
	if made != (bad == 0) || errors.Is(err, zq.ErrInvalid) != (bad > 0) || len(faults(err)) != bad {
		t.Errorf("made: %v, %d faults listed, want %d: %v", made, len(faults(err)), bad, err)
	}
}
