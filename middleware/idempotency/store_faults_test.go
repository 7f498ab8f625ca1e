package idempotency_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

func number(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Every duration has an exact meaning or is refused (FAULTS B29).
func TestStoreDurations(t *testing.T) {
	t.Parallel()
	s := newStore(t, zqtest.Shared(t).Client(), zqtest.Queue(t))
	for d, ok := range map[time.Duration]bool{
		0: false, 1: false, -1: false, -time.Hour: false, 999 * time.Microsecond: false, idempotency.MaxTTL + 1: false,
		time.Millisecond: true, time.Millisecond + 1: true, time.Hour: true, idempotency.MaxTTL: true,
	} {
		key := d.String()
		claim := idempotency.Claim{Name: named(key), Owner: owner("m", 1), For: d}
		a := s.Begin(t.Context(), []idempotency.Claim{claim})[0]
		if a.Granted != ok || errors.Is(a.Err, zq.ErrInvalid) == ok || ok && a.Err != nil {
			t.Errorf("begin for %v: %+v", d, a)
		}
		e := idempotency.Ending{Name: named(key), Owner: owner("m", 1), State: idempotency.StateDone, Keep: d}
		a = s.Finish(t.Context(), []idempotency.Ending{e})[0]
		if a.Granted != ok || errors.Is(a.Err, zq.ErrInvalid) == ok || ok && a.Err != nil {
			t.Errorf("finish for %v: %+v", d, a)
		}
	}
	// 1 ms is 1 ms: the key expires by itself.
	zqtest.Eventually(t, limit, func() bool {
		r, err := s.Look(t.Context(), named("1ms"))
		return err == nil && r.State == idempotency.StateNone
	}, "the end of a record that is kept for 1 ms")
}

// What is invalid otherwise.
func TestStoreInvalid(t *testing.T) {
	t.Parallel()
	s := newStore(t, zqtest.Shared(t).Client(), zqtest.Queue(t))
	good := idempotency.Ending{Name: named("k"), Owner: owner("m", 1), State: idempotency.StateDone, Keep: time.Hour}
	for name, change := range map[string]func(*idempotency.Ending){
		"scope":        func(e *idempotency.Ending) { e.Name.Scope = "a:b" },
		"no owner":     func(e *idempotency.Ending) { e.Owner.Message = "" },
		"fence":        func(e *idempotency.Ending) { e.Owner.Fence = -1 },
		"high fence":   func(e *idempotency.Ending) { e.Owner.Fence = idempotency.MaxFence + 1 },
		"state":        func(e *idempotency.Ending) { e.State = idempotency.StateRunning },
		"large result": func(e *idempotency.Ending) { e.Result = make([]byte, idempotency.MaxResult+1) },
	} {
		e := good
		change(&e)
		if a := s.Finish(t.Context(), []idempotency.Ending{e})[0]; a.Granted || !errors.Is(a.Err, zq.ErrInvalid) {
			t.Errorf("%s: %+v", name, a)
		}
	}
	for i, a := range s.Finish(t.Context(), make([]idempotency.Ending, idempotency.MaxBatch+1)) {
		if !errors.Is(a.Err, zq.ErrInvalid) {
			t.Fatalf("entry %d of too many: %+v", i, a)
		}
	}
	for _, scope := range []string{"", "a/b", "{", "}", "a:b", "é", strings.Repeat("s", 129)} {
		_, err := idempotency.NewRedisStore(nil, scope, idempotency.Shards(-1))
		for _, want := range []string{"scope", "client", "Shards"} {
			if !errors.Is(err, zq.ErrInvalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("scope %q, no client, -1 shards: %v does not name the %s", scope, err, want)
			}
		}
	}
}

// A lost reply makes go-redis send the call again: same owner, same answer.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	proxy := zqtest.Proxy(t, zqtest.Shared(t).Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
	t.Cleanup(func() { rdb.Close() })
	s := newStore(t, rdb, zqtest.Queue(t))
	begin(t, s, "warm", owner("w", 1)) // the scripts are known
	finish(t, s, "warm", owner("w", 1), idempotency.Ending{})
	isScript := zqtest.Command("EVALSHA")
	a := owner("a", 1)
	for what, call := range map[string]func(key string) bool{
		"begin": func(key string) bool { return begin(t, s, key, a).Granted },
		"done": func(key string) bool {
			return finish(t, s, key, a, idempotency.Ending{State: idempotency.StateDone, Result: []byte("r")})
		},
		"fail":  func(key string) bool { return finish(t, s, key, a, idempotency.Ending{State: idempotency.StateFailed}) },
		"clear": func(key string) bool { return finish(t, s, key, a, idempotency.Ending{}) },
	} {
		if what != "begin" && !begin(t, s, what, a).Granted {
			t.Fatal("begin")
		}
		lost := proxy.DropReply(isScript, 1)
		if !call(what) {
			t.Errorf("%s is refused when its reply was lost", what)
		}
		zqtest.Wait(t, lost.Done(), limit)
		lost.Release()
	}
	if r, _ := s.Look(t.Context(), named("done")); string(r.Result) != "r" || r.State != idempotency.StateDone {
		t.Errorf("done: %+v", r)
	}
}

// A server that has lost its scripts gets them again, in the middle of a pipeline too.
func TestScriptFlush(t *testing.T) {
	t.Parallel()
	rdb := zqtest.Redis(t).Client()
	s := newStore(t, rdb, "shop")
	for round := range 3 {
		if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		claims, ends := make([]idempotency.Claim, 100), make([]idempotency.Ending, 100)
		for i := range claims {
			name, o := named(order(1000*round+i)), owner("m", 1)
			claims[i] = idempotency.Claim{Name: name, Owner: o, For: time.Minute}
			ends[i] = idempotency.Ending{Name: name, Owner: o, State: idempotency.StateDone, Keep: time.Hour}
		}
		for i, a := range append(s.Begin(t.Context(), claims), s.Finish(t.Context(), ends)...) {
			if a.Err != nil || !a.Granted {
				t.Fatalf("round %d, entry %d: %+v", round, i, a)
			}
		}
	}
}

// A key that holds something else is left alone, and does not spoil the rest of its batch.
func TestForeignKeys(t *testing.T) {
	t.Parallel()
	rdb := zqtest.Redis(t).Client()
	s := newStore(t, rdb, "shop", idempotency.Shards(1))
	ctx := t.Context()
	const prefix = "zq:{idem/shop/0}:orders:"
	rdb.LPush(ctx, prefix+"list", "x")
	rdb.Set(ctx, prefix+"text", "hello", 0)
	rdb.Set(ctx, prefix+"newer", "2 d 1712345678901234 1 1\nm", 0)
	rdb.Set(ctx, prefix+"short", "1 d 1712345678901234 1 9\nm", 0)
	for _, key := range []string{"list", "text", "newer", "short"} {
		claims := []idempotency.Claim{
			{Name: named(key), Owner: owner("m", 1), For: time.Minute},
			{Name: named("good-" + key), Owner: owner("m", 1), For: time.Minute},
		}
		a := s.Begin(ctx, claims)
		if !errors.Is(a[0].Err, zq.ErrWrongType) || a[0].Granted || !a[1].Granted || a[1].Err != nil {
			t.Errorf("begin %s: %+v", key, a)
		}
		e := s.Finish(ctx, []idempotency.Ending{
			{Name: named(key), Owner: owner("m", 1), State: idempotency.StateDone, Keep: time.Hour},
			{Name: named("good-" + key), Owner: owner("m", 1), State: idempotency.StateDone, Keep: time.Hour},
		})
		if !errors.Is(e[0].Err, zq.ErrWrongType) || e[0].Granted || !e[1].Granted || e[1].Err != nil {
			t.Errorf("finish %s: %+v", key, e)
		}
		if _, err := s.Look(ctx, named(key)); !errors.Is(err, zq.ErrWrongType) {
			t.Errorf("look %s: %v", key, err)
		}
	}
	if rdb.Get(ctx, prefix+"text").Val() != "hello" || rdb.LLen(ctx, prefix+"list").Val() != 1 {
		t.Error("a foreign key was changed")
	}
}

// Out of memory refuses a new mark as a whole, but neither a renewal nor the end of a run.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	rdb := zqtest.Redis(t).Client()
	s := newStore(t, rdb, "shop", idempotency.Shards(1))
	a := owner("a", 1)
	begin(t, s, "running", a)
	finish(t, s, "warm", a, idempotency.Ending{})
	if err := rdb.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if got := begin(t, s, "new", a); got.Granted || got.Err == nil || !strings.Contains(got.Err.Error(), "OOM") {
		t.Errorf("a new mark: %+v", got)
	}
	if got := begin(t, s, "running", a); !got.Granted {
		t.Errorf("renewal: %+v", got)
	}
	if !finish(t, s, "running", a, idempotency.Ending{State: idempotency.StateDone, Result: []byte("r")}) {
		t.Error("the end of the run is refused")
	}
	if r, err := s.Look(t.Context(), named("new")); err != nil || r.State != idempotency.StateNone {
		t.Errorf("half a mark: %+v, %v", r, err)
	}
}

// No instant of the client's clock is sent: the numbers among the arguments are durations and fences.
func TestNoClientTime(t *testing.T) {
	t.Parallel()
	rdb, spy := zqtest.Shared(t).Client(), &spy{}
	rdb.AddHook(spy)
	s := newStore(t, rdb, zqtest.Queue(t))
	for _, state := range []idempotency.State{idempotency.StateDone, idempotency.StateFailed, idempotency.StateNone} {
		begin(t, s, "key"+string(state), owner("m", 7))
		finish(t, s, "key"+string(state), owner("m", 7), idempotency.Ending{State: state})
	}
	allowed := map[int64]bool{1: true, time.Minute.Milliseconds(): true, time.Hour.Milliseconds(): true}
	if len(spy.numbers) < 12 {
		t.Errorf("saw only %v", spy.numbers)
	}
	for _, n := range spy.numbers {
		if !allowed[n] {
			t.Errorf("a script was given %d", n)
		}
	}
}

// spy keeps the numbers among the arguments of scripts.
type spy struct {
	mu      sync.Mutex
	numbers []int64
}

func (s *spy) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}
func (s *spy) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (s *spy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		s.note(cmds) // not locked in next: that makes connections by pipelines of its own
		return next(ctx, cmds)
	}
}

func (s *spy) note(cmds []redis.Cmder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cmd := range cmds {
		if !strings.HasPrefix(cmd.Name(), "eval") {
			continue
		}
		for _, arg := range cmd.Args()[1:] {
			switch v := arg.(type) {
			case int64:
				s.numbers = append(s.numbers, v)
			case int:
				s.numbers = append(s.numbers, int64(v))
			case time.Time:
				s.numbers = append(s.numbers, v.UnixNano())
			}
		}
	}
}
