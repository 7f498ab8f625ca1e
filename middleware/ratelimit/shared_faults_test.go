package ratelimit_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware/ratelimit"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// throughProxy is a client whose commands go through a proxy; changes are made to its options.
func throughProxy(t *testing.T, changes ...func(*redis.Options)) (*redis.Client, *zqtest.FaultProxy) {
	t.Helper()
	proxy := zqtest.Proxy(t, zqtest.Shared(t).Addr())
	opts := &redis.Options{Addr: proxy.Addr()}
	for _, change := range changes {
		change(opts)
	}
	rdb := redis.NewClient(opts)
	t.Cleanup(func() { rdb.Close() })
	return rdb, proxy
}

// A server that knows no script, or no longer, is given it; calls that went together are told apart.
func TestSharedScriptIsLoadedAgain(t *testing.T) {
	t.Parallel()
	server := zqtest.Redis(t)
	proxy := zqtest.Proxy(t, server.Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
	t.Cleanup(func() { rdb.Close() })
	l := shared(t, rdb, "scope", perHour, 1)
	texts := proxy.Count(zqtest.Command("EVAL"))
	for round := range 3 {
		if err := server.Client().ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		name := strconv.Itoa(round)
		about(t, l, name, "a", 0)
		about(t, l, name, "b", 1)
		if n := texts.Commands(); n != round+1 {
			t.Errorf("the script was sent %d times, want %d", n, round+1)
		}
	}
	if err := server.Client().ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for i := range 50 {
		wait.Go(func() { about(t, l, "crowd/"+strconv.Itoa(i), "a", 0) })
	}
	wait.Wait()
}

// A lost reply makes it slower and never faster: leave to run is paid again, and a slot is found again.
func TestSharedLostReply(t *testing.T) {
	t.Parallel()
	rdb, proxy := throughProxy(t) // go-redis sends again by itself
	l := shared(t, rdb, zqtest.Queue(t), perHour, 2, ratelimit.MaxWait(ratelimit.MaxMaxWait))
	about(t, l, "known", "script", 0)
	lost := proxy.DropReply(zqtest.Command("EVALSHA"), 1)
	about(t, l, "n", "a", 0)
	zqtest.Wait(t, lost.Done(), limit)
	lost = proxy.DropReply(zqtest.Command("EVALSHA"), 1)
	about(t, l, "n", "b", 1)
	zqtest.Wait(t, lost.Done(), limit)
	about(t, l, "n", "c", 2)
	about(t, l, "n", "b", 1)
}

// What somebody else put there is an error, and is left as it is.
func TestSharedForeignKeys(t *testing.T) {
	t.Parallel()
	rdb, scope := zqtest.Shared(t).Client(), zqtest.Queue(t)
	l := shared(t, rdb, scope, perHour, 1)
	about(t, l, "n", "a", 0)
	about(t, l, "n", "b", 1)
	for _, key := range keysOf(t, rdb, scope) {
		if err := rdb.Rename(t.Context(), key, "{"+strings.Trim(key, "zq:{")+"-kept").Err(); err != nil {
			t.Fatal(err)
		}
		if err := rdb.Set(t.Context(), key, "foreign", time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Reserve(t.Context(), "n", "c"); !redis.HasErrorPrefix(errors.Unwrap(err), "ZQTYPE") {
			t.Errorf("%s: %v", key, err)
		}
		if got := rdb.Get(t.Context(), key).Val(); got != "foreign" {
			t.Errorf("%s holds %q", key, got)
		}
		if err := rdb.Del(t.Context(), key).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// What another clock or another limit left behind holds nobody up for longer than the line reaches.
func TestSharedOldStateIsBounded(t *testing.T) {
	t.Parallel()
	rdb, scope := zqtest.Shared(t).Client(), zqtest.Queue(t)
	const line = 10
	l := shared(t, rdb, scope, 1, 1, ratelimit.Line(line), ratelimit.MaxWait(time.Minute))
	told(t, l, "n", "first", 0)
	if _, err := l.Reserve(t.Context(), "n", "far"); err != nil {
		t.Fatal(err)
	}
	ahead := float64(time.Now().Add(365 * 24 * time.Hour).UnixMicro())
	for _, key := range keysOf(t, rdb, scope) {
		var err error
		if strings.HasSuffix(key, "}:slots") {
			members := rdb.ZRange(t.Context(), key, 0, -1).Val()
			err = rdb.ZAdd(t.Context(), key, redis.Z{Score: ahead, Member: members[0]}).Err()
		} else {
			err = rdb.HSet(t.Context(), key, "tat", int64(ahead), "over", int64(ahead)).Err()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"far", "other"} {
		wait, err := l.Reserve(t.Context(), "n", id)
		if err != nil || wait <= 0 || wait > time.Minute {
			t.Errorf("%s: told %s, %v", id, wait, err)
		}
	}
	for _, key := range keysOf(t, rdb, scope) {
		if ttl := rdb.PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > 3*time.Minute {
			t.Errorf("%s expires in %s", key, ttl)
		}
	}
	for _, garbage := range []string{"", "x", "-1", "nan", "inf", "-inf", "1e300"} {
		for _, key := range keysOf(t, rdb, scope) {
			if strings.HasSuffix(key, "}:pace") {
				if err := rdb.HSet(t.Context(), key, "tat", garbage, "over", garbage).Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i := range 2 * line {
			if wait, err := l.Reserve(t.Context(), "n", garbage+strconv.Itoa(i)); err != nil || wait < 0 || wait > time.Minute {
				t.Errorf("%q, message %d: told %s, %v", garbage, i, wait, err)
			}
		}
	}
}

// A server that is away is an error within the time that the caller has, and the slot of before is found again.
func TestSharedServerAway(t *testing.T) {
	t.Parallel()
	rdb, proxy := throughProxy(t, func(o *redis.Options) { o.MaxRetries, o.DialerRetries = -1, 1 })
	l := shared(t, rdb, zqtest.Queue(t), perHour, 1)
	about(t, l, "n", "a", 0)
	about(t, l, "n", "b", 1)
	proxy.Cut()
	for range 3 {
		if _, err := l.Reserve(t.Context(), "n", "b"); err == nil || !strings.HasPrefix(err.Error(), "ratelimit: reserve: ") {
			t.Errorf("told %v", err)
		}
	}
	proxy.Heal()
	about(t, l, "n", "b", 1)
}

// A caller whose context ends waits no longer, with its cause; who stays is answered.
func TestSharedContextEndsWhileAsked(t *testing.T) {
	t.Parallel()
	rdb, proxy := throughProxy(t)
	l := shared(t, rdb, zqtest.Queue(t), perHour, 1, ratelimit.MaxWait(ratelimit.MaxMaxWait))
	about(t, l, "n", "a", 0)
	held := proxy.HoldReply(zqtest.Command("EVALSHA"))
	gone := errors.New("gone")
	ctx, leave := context.WithCancelCause(t.Context())
	left, stayed := make(chan error, 1), make(chan time.Duration, 1)
	go func() {
		_, err := l.Reserve(ctx, "n", "b")
		left <- err
	}()
	zqtest.Wait(t, held.Done(), limit) // it is on its way
	go func() {
		wait, err := l.Reserve(t.Context(), "n", "c")
		if err != nil {
			t.Error(err)
		}
		stayed <- wait
	}()
	leave(gone)
	if err := zqtest.Wait(t, left, limit); !errors.Is(err, gone) {
		t.Errorf("told %v", err)
	}
	held.Release()
	if wait := zqtest.Wait(t, stayed, limit); wait > 2*time.Hour || wait <= time.Hour {
		t.Errorf("who stayed is told %s, want the slot behind that of who left", wait)
	}
	about(t, l, "n", "b", 1)
	if _, err := l.Reserve(ctx, "n", "d"); !errors.Is(err, gone) {
		t.Errorf("asked with an ended context: %v", err)
	}
}

// At a concurrency of 100 the round trips are shared: one for many messages.
func TestSharedRoundTripsAreShared(t *testing.T) {
	t.Parallel()
	rdb, proxy := throughProxy(t, func(o *redis.Options) { o.PoolSize = 1 })
	l := shared(t, rdb, zqtest.Queue(t), perHour, 1)
	about(t, l, "known", "script", 0)
	held := proxy.HoldReply(zqtest.Command("EVALSHA"))
	var wait sync.WaitGroup
	ask := func(i int) { wait.Go(func() { about(t, l, strconv.Itoa(i), "m", 0) }) }
	ask(0)
	zqtest.Wait(t, held.Done(), limit)
	for i := range 100 {
		ask(1 + i)
	}
	// None of them goes out before the one ahead is answered.
	seen := proxy.Count(zqtest.Command("EVALSHA"))
	held.Release()
	wait.Wait()
	if n := seen.Commands(); n != 100 {
		t.Errorf("%d calls, want 100", n)
	}
}
