package zqtest_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

func TestEmbeddedAdvanceMovesTimeAndExpiryTogether(t *testing.T) {
	t.Parallel()
	e := zqtest.Embedded(t)
	rdb, ctx := e.Client(), t.Context()
	must(t, rdb.Set(ctx, "short", "v", 10*time.Second).Err())
	must(t, rdb.Set(ctx, "long", "v", time.Hour).Err())
	before := scriptTime(t, rdb)
	e.Advance(30 * time.Second)
	if moved := scriptTime(t, rdb).Sub(before); moved < 30*time.Second || moved > 40*time.Second {
		t.Errorf("TIME moved by %v", moved)
	}
	if n := rdb.Exists(ctx, "short", "long").Val(); n != 1 {
		t.Errorf("%d keys are left, want the long-lived one", n)
	}
	if ttl := rdb.TTL(ctx, "long").Val(); ttl > time.Hour-30*time.Second {
		t.Errorf("TTL %v", ttl)
	}
}

func TestEmbeddedClockStandsAfterAdvance(t *testing.T) {
	t.Parallel()
	e := zqtest.Embedded(t)
	rdb := e.Client()
	first := scriptTime(t, rdb)
	zqtest.Eventually(t, limit, func() bool { return scriptTime(t, rdb).After(first) }, "TIME to run on")
	e.Advance(0)
	frozen := scriptTime(t, rdb)
	e.Advance(time.Microsecond)
	if got := scriptTime(t, rdb); got.Sub(frozen) != time.Microsecond {
		t.Errorf("TIME moved by %v, want 1µs", got.Sub(frozen))
	}
	if now := e.Now(); now.Sub(frozen).Truncate(time.Microsecond) != time.Microsecond {
		t.Errorf("Now %v, TIME was %v", now, frozen)
	}
}

func TestEmbeddedAdvanceWakesIdleConsumers(t *testing.T) {
	t.Parallel()
	e := zqtest.Embedded(t)
	rdb, ctx := e.Client(func(o *redis.Options) { o.ReadTimeout = limit }), t.Context()
	must(t, rdb.ZAdd(ctx, "zq:{mail}:delayed", redis.Z{Score: 1, Member: "m"}).Err())
	must(t, rdb.Set(ctx, "foreign", "v", 0).Err())
	woken := make(chan error, 1)
	go func() { woken <- rdb.BZPopMin(ctx, limit, "zq:{mail}:wake").Err() }()
	e.Advance(time.Hour)
	must(t, zqtest.Wait(t, woken, limit/2))
}

func TestEmbeddedCloseTwice(t *testing.T) {
	t.Parallel()
	e, err := zqtest.StartEmbedded()
	must(t, err)
	rdb := e.Client()
	must(t, rdb.Ping(t.Context()).Err())
	e.Close()
	e.Close()
	if rdb.Ping(t.Context()).Err() == nil {
		t.Error("a closed server answers")
	}
}

// scriptTime is TIME as a script sees it.
func scriptTime(t testing.TB, rdb *redis.Client) time.Time {
	t.Helper()
	parts, err := rdb.Eval(t.Context(), "return redis.call('TIME')", nil).StringSlice()
	must(t, err)
	var sec, micros int64
	_, err = fmt.Sscan(parts[0]+" "+parts[1], &sec, &micros)
	must(t, err)
	return time.Unix(sec, micros*1000)
}

// A demo that needs no server. What it stored is gone when it ends.
func ExampleStartEmbedded() {
	e, err := zqtest.StartEmbedded()
	if err != nil {
		panic(err)
	}
	defer e.Close()
	fmt.Println(e.Client().Ping(context.Background()).Val())
	// Output: PONG
}

// Keys expire as time goes by, and many of them do not slow the rest down.
func TestEmbeddedExpiryFollowsTheClock(t *testing.T) {
	t.Parallel()
	rdb := zqtest.Embedded(t).Client()
	pipe := rdb.Pipeline()
	for i := range 5_000 {
		pipe.Set(t.Context(), strconv.Itoa(i), "v", time.Hour)
	}
	pipe.Set(t.Context(), "short", "v", 50*time.Millisecond)
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	zqtest.Eventually(t, limit, func() bool { return rdb.Exists(t.Context(), "short").Val() == 0 }, "the short one expires")
	if n := rdb.DBSize(t.Context()).Val(); n != 5_000 {
		t.Errorf("%d keys are left", n)
	}
}
