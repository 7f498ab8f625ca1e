package ratelimit_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware/ratelimit"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

const perHour = 1.0 / 3600

func shared(t testing.TB, rdb redis.UniversalClient, scope string, limit float64, burst int, opts ...ratelimit.SharedOption,
) *ratelimit.SharedLimiter {
	t.Helper()
	l, err := ratelimit.Shared(rdb, scope, limit, burst, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// about asks, and expects a wait of that many hours, less what the test itself has taken.
func about(t *testing.T, l ratelimit.Limiter, name, id string, hours int) {
	t.Helper()
	got, err := l.Reserve(t.Context(), name, id)
	want := time.Duration(hours) * time.Hour
	if err != nil || got > want || got < want-2*limit || want == 0 && got != 0 {
		t.Errorf("%s, %s: told %s, %v, want about %s", name, id, got, err, want)
	}
}

// keysOf are the keys of a scope in Redis.
func keysOf(t *testing.T, rdb redis.UniversalClient, scope string) []string {
	t.Helper()
	keys, err := rdb.Keys(t.Context(), "zq:{rate/"+scope+"/*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// Two limiters of one scope are one limit; a message has one slot, whichever it asks, and pays anew for its next run.
func TestSharedIsOneLimit(t *testing.T) {
	t.Parallel()
	rdb, scope := zqtest.Shared(t).Client(), zqtest.Queue(t)
	long := ratelimit.MaxWait(ratelimit.MaxMaxWait)
	a, b := shared(t, rdb, scope, perHour, 2, long), shared(t, rdb, scope, perHour, 2, long)
	about(t, a, "n", "1", 0)
	about(t, b, "n", "2", 0)
	about(t, a, "n", "3", 1)
	about(t, b, "n", "4", 2)
	about(t, b, "n", "3", 1)
	about(t, a, "n", "4", 2)
	about(t, b, "n", "1", 3)
	about(t, b, "other name", "1", 0)
	about(t, shared(t, rdb, scope+"-2", perHour, 2, long), "n", "1", 0)
}

// Real time goes by: a slot is due by the server's clock, once.
func TestSharedSlotIsUsedOnce(t *testing.T) {
	t.Parallel()
	rdb, scope := zqtest.Shared(t).Client(), zqtest.Queue(t)
	l := shared(t, rdb, scope, 5, 50)
	ask := func(id string) time.Duration {
		wait, err := l.Reserve(t.Context(), "n", id)
		if err != nil {
			t.Fatal(err)
		}
		return wait
	}
	var began time.Time
	wait := time.Duration(0)
	for wait == 0 { // the burst
		began = time.Now()
		wait = ask("m")
	}
	if wait > time.Second/5 {
		t.Errorf("the next slot is %s away", wait)
	}
	for i := range 100 { // who comes later waits longer than this test takes
		ask(strconv.Itoa(i))
	}
	zqtest.Eventually(t, limit, func() bool { return ask("m") == 0 }, "the slot")
	if took := time.Since(began); took < wait-5*time.Millisecond {
		t.Errorf("the slot was due after %s, want %s", took, wait)
	}
	if again := ask("m"); again == 0 {
		t.Error("the slot was used twice")
	}
}

// Whoever finds the line full has no slot, and is not remembered.
func TestSharedLineIsBounded(t *testing.T) {
	t.Parallel()
	rdb, scope := zqtest.Shared(t).Client(), zqtest.Queue(t)
	l := shared(t, rdb, scope, 1, 1, ratelimit.Line(100))
	for i := range 500 {
		wait, err := l.Reserve(t.Context(), "n", strconv.Itoa(i))
		if err != nil || i > 0 && wait <= 0 {
			t.Fatalf("message %d: told %s, %v", i, wait, err)
		}
	}
	for _, key := range keysOf(t, rdb, scope) {
		if strings.HasSuffix(key, "}:slots") {
			if n := rdb.ZCard(t.Context(), key).Val(); n < 100 || n > 101+int64(limit/time.Second) {
				t.Errorf("%d slots, want 100", n)
			}
		}
	}
}

// Times are kept to the microsecond: slots are an interval apart, and no digit is lost on the way.
func TestSharedTimesAreExact(t *testing.T) {
	t.Parallel()
	rdb, scope := zqtest.Shared(t).Client(), zqtest.Queue(t)
	const interval = float64(3_600_000_007) // microseconds: no round number
	l := shared(t, rdb, scope, 1e6/interval, 1, ratelimit.MaxWait(ratelimit.MaxMaxWait))
	for i := range 10 {
		if _, err := l.Reserve(t.Context(), "n", strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	var last, tat float64
	for _, key := range keysOf(t, rdb, scope) {
		if strings.HasSuffix(key, "}:pace") {
			var err error
			if tat, err = rdb.HGet(t.Context(), key, "tat").Float64(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for i, z := range rdb.ZRangeWithScores(t.Context(), key, 0, -1).Val() {
			if i > 0 && z.Score != last+interval {
				t.Errorf("slot %d is %.0f after the one before, want %.0f", i, z.Score-last, interval)
			}
			last = z.Score
		}
	}
	if last == 0 || tat != last+interval {
		t.Errorf("the next slot is at %.0f, want %.0f", tat, last+interval)
	}
}

// Slots that nobody came for go when others ask, so that they do not pile up under a name that is in use.
func TestSharedForgetsLostSlots(t *testing.T) {
	t.Parallel()
	server := zqtest.Embedded(t)
	server.Advance(0)
	rdb := server.Client()
	l := shared(t, rdb, "scope", 1, 1)
	told(t, l, "n", "first", 0)
	for i := range 200 {
		told(t, l, "n", strconv.Itoa(i), time.Second)
		server.Advance(time.Second)
	}
	for _, key := range keysOf(t, rdb, "scope") {
		if strings.HasSuffix(key, "}:slots") {
			if n := rdb.ZCard(t.Context(), key).Val(); n > 3 {
				t.Errorf("%d slots are left", n)
			}
		}
	}
}

// Every key of a name shares its hash tag, expires by itself, and soon after the name is full again.
func TestSharedKeysExpire(t *testing.T) {
	t.Parallel()
	rdb, scope := zqtest.Shared(t).Client(), zqtest.Queue(t)
	l := shared(t, rdb, scope, 1, 10)
	hostile := []string{"", "n", "a}b{c", "\x00\xff", strings.Repeat("long", 10_000)}
	for _, name := range hostile {
		for i := range 12 {
			if _, err := l.Reserve(t.Context(), name, fmt.Sprint("{}", i)); err != nil {
				t.Fatalf("%.20q: %v", name, err)
			}
		}
	}
	tags := map[string]int{}
	for _, key := range keysOf(t, rdb, scope) {
		tag, kind, _ := strings.Cut(key, "}:")
		tags[tag]++
		// The burst fills up in ten seconds, and two slots are ahead; a slot is kept for ten more.
		if ttl := rdb.PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > 24*time.Second {
			t.Errorf("%s expires in %s", kind, ttl)
		}
		if len(key) > 220 || kind != "pace" && kind != "slots" {
			t.Errorf("key %q", key)
		}
	}
	for tag, n := range tags {
		if n != 2 {
			t.Errorf("%d keys of %s, want 2", n, tag)
		}
	}
	if len(tags) != len(hostile) {
		t.Errorf("%d names have %d tags", len(hostile), len(tags))
	}
	fast := shared(t, rdb, scope+"-fast", ratelimit.MaxLimit, 1)
	for i := range 100 {
		if _, err := fast.Reserve(t.Context(), strconv.Itoa(i), "m"); err != nil {
			t.Fatal(err)
		}
	}
	zqtest.Eventually(t, limit, func() bool { return len(keysOf(t, rdb, scope+"-fast")) == 0 }, "the end of all keys")
}

// oneNodeCluster has every slot on one node, so that a script that mixes slots is refused.
func oneNodeCluster(t *testing.T) *redis.ClusterClient {
	t.Helper()
	server := zqtest.Redis(t, zqtest.WithConfig("cluster-enabled", "yes"))
	if err := server.Client().ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr()}})
	t.Cleanup(func() { rdb.Close() })
	zqtest.Eventually(t, limit, func() bool {
		return rdb.Set(t.Context(), "ready", 1, time.Minute).Err() == nil
	}, "a cluster of one node")
	return rdb
}

func TestSharedOnACluster(t *testing.T) {
	t.Parallel()
	rdb := oneNodeCluster(t)
	l := shared(t, rdb, "scope", perHour, 1)
	var wait sync.WaitGroup
	var now, later atomic.Int64
	for i := range 100 { // names of many slots go together
		wait.Go(func() {
			got, err := l.Reserve(t.Context(), strconv.Itoa(i%50), strconv.Itoa(i))
			switch {
			case err != nil:
				t.Error(err)
			case got == 0:
				now.Add(1)
			default:
				later.Add(1)
			}
		})
	}
	wait.Wait()
	if now.Load() != 50 || later.Load() != 50 {
		t.Errorf("%d at once and %d later, want 50 each", now.Load(), later.Load())
	}
}
