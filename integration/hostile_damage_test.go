package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/effect"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// damage is something that somebody did to a queue by hand. Verify names it, the victims may be lost to it,
// and everything else works on.
type damage struct {
	name    string
	do      func(x *trial)
	names   string   // part of what Verify says right after, "" if there is nothing to say
	victims []string // messages that need not run any more
}

func (x *trial) hset(hash, field, value string) {
	x.t.Helper()
	x.must(x.rdb.HSet(x.t.Context(), x.key(hash), field, value).Err())
}

func (x *trial) hdel(hash, field string) {
	x.t.Helper()
	x.must(x.rdb.HDel(x.t.Context(), x.key(hash), field).Err())
}

func (x *trial) zadd(set string, score float64, member string) {
	x.t.Helper()
	x.must(x.rdb.ZAdd(x.t.Context(), x.key(set), redis.Z{Score: score, Member: member}).Err())
}

func (x *trial) zrem(set, member string) {
	x.t.Helper()
	x.must(x.rdb.ZRem(x.t.Context(), x.key(set), member).Err())
}

// memberOf is the member of a message in one of the queue's sets.
func (x *trial) memberOf(set, id string) string {
	x.t.Helper()
	all, err := x.rdb.ZRange(x.t.Context(), x.key(set), 0, -1).Result()
	x.must(err)
	i := slices.IndexFunc(all, func(m string) bool {
		_, rest, _ := strings.Cut(m, ":")
		return rest == id || strings.HasPrefix(rest, id+"\x00")
	})
	if i < 0 {
		x.t.Fatalf("%s is not in %s: %q", id, set, all)
	}
	return all[i]
}

// dueNow makes what is delayed due.
func (x *trial) dueNow(id string) { x.zadd("delayed", 1, x.memberOf("delayed", id)) }

// furnish puts messages into each state that needs no worker: ready, a lane, delayed, waiting for a retry, dead.
func (x *trial) furnish() {
	x.t.Helper()
	x.sendAll(zq.Message{ID: "retry"}, zq.Message{ID: "dead"}, zq.Message{ID: "dead-k", Key: "kd"})
	c := x.start(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		if d.ID == "retry" {
			return zq.RetryAfter(time.Hour, errors.New("later"))
		}
		return zq.Dead("test", errors.New("no good"))
	}), zq.ConsumerConfig{})
	zqt.Eventually(x.t, patience, func() bool { d := x.depth(); return d.Dead == 2 && d.Delayed == 1 && d.Claims == 0 }, "furnished")
	x.stop(c)
	x.sendAll(zq.Message{ID: "ready"}, zq.Message{ID: "delayed", Delay: time.Hour}, zq.Message{ID: "k1-a", Key: "k1"},
		zq.Message{ID: "k1-b", Key: "k1"}, zq.Message{ID: "k2-a", Key: "k2"})
	x.clean("furnished")
}

func damages() []damage {
	retry := func(record string) func(x *trial) {
		return func(x *trial) { x.hset("retry", "retry", record); x.dueNow("retry") }
	}
	envelope := func(raw string) func(x *trial) { return func(x *trial) { x.hset("msg", "ready", raw) } }
	lock := func(raw string) func(x *trial) { return func(x *trial) { x.hset("locks", "k1", raw) } }
	k1 := []string{"k1-a", "k1-b"}
	return []damage{
		{"nothing", func(*trial) {}, "", nil},
		{"retry record: text", retry("hello"), "", nil},
		{"retry record: empty", retry(""), "", nil},
		{"retry record: score is text", retry("1|0|0|0|abc|x"), "", nil},
		{"retry record: score is nan", retry("1|0|0|0|nan|x"), "", nil},
		{"retry record: score with spaces", retry("1|0|0|0| 7|x"), "", nil},
		{"retry record: score of two points", retry("1|0|0|0|1.2.3|x"), "", nil},
		{"retry record: score is inf", retry("1|0|0|0|inf|x"), "", nil},
		{"retry record: huge numbers", retry("99999999999999999999|0|0|99999999999999999999||x"), "", nil},
		{"retry record: negative", retry("-1|0|0|0|5|x"), "", nil},
		{"retry record: error with NUL and bars", retry("1|0|0|0|5|a\x00|b|c"), "", nil},
		{"retry record: of nobody", func(x *trial) { x.hset("retry", "nobody", "1|0|0|0|5|x") }, "nobody", nil},
		{"retry record: gone", func(x *trial) { x.hdel("retry", "retry"); x.dueNow("retry") }, "", nil},
		{"envelope: gone", func(x *trial) { x.hdel("msg", "ready") }, "no envelope", []string{"ready"}},
		{"envelope: empty", envelope(""), "ready", []string{"ready"}},
		{"envelope: text", envelope("hello, world"), "ready", []string{"ready"}},
		{"envelope: cut in its head", envelope("\x0a\x0e0000"), "ready", []string{"ready"}},
		{"envelope: cut in its key", envelope("\x0a\x0e00000000000001\x12"), "ready", []string{"ready"}},
		{"envelope: cut in a long key", envelope("\x0a\x0e00000000000001\x12\x80"), "ready", []string{"ready"}},
		{"envelope: bits", envelope(strings.Repeat("\xff", 64)), "ready", []string{"ready"}},
		{"envelope: of nobody", func(x *trial) { x.hset("msg", "nobody", "\x0a\x0e00000000000001") }, "nobody", nil},
		{"envelope: of a dead letter gone", func(x *trial) { x.hdel("msg", "dead") }, "no envelope", nil},
		{"story: gone", func(x *trial) { x.hdel("deadinfo", "dead") }, "no story", nil},
		{"story: text", func(x *trial) { x.hset("deadinfo", "dead", "hello") }, "", nil},
		{"story: of nobody", func(x *trial) { x.hset("deadinfo", "nobody", "hello") }, "differ in size", nil},
		{"lock: text", lock("hello"), "k1", k1},
		{"lock: empty", lock(""), "k1", k1},
		{"lock: of a claim that is gone", lock("00ff|1|0"), "k1", k1},
		{"lock: delayed, not in delayed", lock("delayed|0|0"), "k1", k1},
		{"lock: suspect, not in suspect", lock("suspect|0|1"), "k1", k1},
		{"lock: halted by hand", lock("halted|0|0"), "k1", k1},
		{"lock: of a key nobody knows", func(x *trial) { x.hset("locks", "k9", "00ff|1|0") }, "k9", []string{"k9"}},
		{"ready: entry without a lane", func(x *trial) { x.zadd("ready", 1, "\x00k9") }, "k9", nil},
		{"ready: entry gone", func(x *trial) { x.zrem("ready", "\x00k1") }, "k1", k1},
		{"ready: entry with another score", func(x *trial) { x.zadd("ready", -5, "\x00k1") }, "k1", nil},
		{"ready: a keyed message lies loose", func(x *trial) { x.zadd("ready", 1, x.memberOf("lane:k1", "k1-a")) }, "k1-a", k1},
		{"ready: message gone", func(x *trial) { x.zrem("ready", x.memberOf("ready", "ready")) }, "nowhere", []string{"ready"}},
		{"delayed: message gone", func(x *trial) { x.zrem("delayed", x.memberOf("delayed", "delayed")) }, "nowhere", nil},
		{"delayed: entry of a key without a lock", func(x *trial) { x.zadd("delayed", 1, "\x00k9") }, "k9", nil},
		{"delayed: entry of a key in ready", func(x *trial) { x.zadd("delayed", 1, "\x00k1") }, "k1", nil},
		{"suspect: entry of a key without a lock", func(x *trial) { x.zadd("suspect", 1, "\x00k1") }, "k1", nil},
		{"suspect: a message of nobody", func(x *trial) { x.zadd("suspect", 1, "\x0100000000000001:nobody") }, "nobody", nil},
		{"in two places", func(x *trial) { x.zadd("delayed", 1, x.memberOf("ready", "ready")) }, "and in", nil},
		{"in ready and dead", func(x *trial) { x.zadd("ready", 1, x.memberOf("dead", "dead")) }, "and in", nil},
		{"lane: gone", func(x *trial) { x.must(x.rdb.Del(x.t.Context(), x.key("lane:k1")).Err()) }, "nowhere", k1},
		{"lane: a string", func(x *trial) { x.must(x.rdb.Set(x.t.Context(), x.key("lane:k1"), "x", 0).Err()) }, "is a string", k1},
		{"lane: another key's message", func(x *trial) { x.zadd("lane:k1", 1, x.memberOf("lane:k2", "k2-a")) }, "holds", slices.Concat(k1, []string{"k2-a"})},
		{"lane: a plain member", func(x *trial) { x.zadd("lane:k1", 1, "hello") }, "holds", k1},
		{"lease without a claim", func(x *trial) { x.zadd("leases", 1, "00ff") }, "without a claim", nil},
		{"lease for ever", func(x *trial) { x.zadd("leases", 1e300, "00ff") }, "without a claim", nil},
		{"claim without a lease", func(x *trial) { x.zadd("claim:00ff", 1, x.memberOf("ready", "ready")) }, "", nil},
		{"ops without their times", func(x *trial) { x.hset("ops", "token", "x") }, "differ in size", nil},
		{"done for ever", func(x *trial) { x.zadd("done", 1e300, "nobody") }, "", nil},
		{"sequence: text", func(x *trial) { x.hset("meta", "seq", "abc") }, "", nil},
		{"sequence: empty", func(x *trial) { x.hset("meta", "seq", "") }, "", nil},
		{"sequence: in 2100", func(x *trial) { x.hset("meta", "seq", "4102444800000000") }, "", nil},
		{"sequence: negative", func(x *trial) { x.hset("meta", "seq", "-5") }, "", nil},
		{"sequence: gone", func(x *trial) { x.hdel("meta", "seq") }, "", nil},
		{"meta: gone", func(x *trial) { x.must(x.rdb.Del(x.t.Context(), x.key("meta")).Err()) }, "", nil},
		{"counters: text", func(x *trial) { x.hset("stats", "enqueued", "abc"); x.hset("stats", "acked", "abc") }, "counters", nil},
		{"counters: at their end", func(x *trial) { x.hset("stats", "acked", "9223372036854775807") }, "counters", nil},
		{"counters: all text", func(x *trial) {
			for _, name := range []string{"acked", "acked_plain", "duplicates", "failed", "dead", "replayed", "purged", "reaped", "rescued", "refused"} {
				x.hset("stats", name, "abc")
			}
		}, "", nil}, // as if there were none, which is right for those
		{"counters: gone", func(x *trial) { x.must(x.rdb.Del(x.t.Context(), x.key("stats")).Err()) }, "counters", nil},
		{"marker of another name", func(x *trial) { x.zadd("wake", -1, "hello") }, "", nil},
	}
}

func TestHostileDamage(t *testing.T) {
	t.Parallel()
	for _, c := range damages() {
		t.Run(c.name, func(t *testing.T) {
			x := newTrial(t)
			x.furnish()
			c.do(x)
			r, err := x.look.Verify(t.Context(), 0)
			report := strings.Join(r.Problems, "\n  ")
			if err != nil || (c.names == "") != (report == "") || !strings.Contains(report, c.names) {
				t.Errorf("verify: %v\n  %s\nwant it to say %q", err, report, c.names)
			}
			x.worksOn(c.victims)
		})
	}
}

// worksOn expects that what is there runs, but for the victims, and that new messages and old dead letters do:
// retried, followed up, dying and replayed.
func (x *trial) worksOn(victims []string) {
	x.t.Helper()
	_, err := x.look.Depth(x.t.Context())
	x.must(err)
	want := map[string]bool{"follow": true}
	for _, id := range []string{"ready", "k1-a", "k1-b", "k2-a"} {
		want[id] = !slices.Contains(victims, id)
	}
	for i := range 6 {
		m := zq.Message{ID: fmt.Sprint("new-", i), Key: []string{"", "k2", "k3"}[i%3]}
		want[m.ID] = true
		r, err := x.prod.Enqueue(x.t.Context(), m)
		if err != nil || r.Duplicate {
			x.t.Fatalf("enqueue %s: %+v, %v", m.ID, r, err)
		}
	}
	_, err = x.prod.Enqueue(x.t.Context(), zq.Message{ID: "ready"}) // whatever it says of that one
	x.must(err)
	ran := make(chan string, 1000)
	x.start(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		switch {
		case d.ID == "new-0" && d.Replays == 0:
			return zq.Dead("test", nil)
		case d.Attempt == 1:
			return zq.RetryAfter(time.Millisecond, errors.New("once more"))
		}
		ran <- d.ID
		if d.ID == "new-0" {
			return errors.Join(d.Then(zq.Message{ID: "follow"}), d.Effect(effect.IncrBy("n", 1)))
		}
		return nil
	}), zq.ConsumerConfig{Lease: 2 * time.Second})
	zqt.Eventually(x.t, patience, func() bool {
		return x.look.Replay(x.t.Context(), "new-0", zq.ReplayAtEnd()) == nil
	}, "a new message dies and is replayed")
	for id, due := range want {
		if !due {
			delete(want, id)
		}
	}
	for len(want) > 0 {
		delete(want, zqt.Wait(x.t, ran, patience))
	}
	zqt.Eventually(x.t, patience, func() bool {
		d := x.depth()
		return d.Running == 0 && d.KeysHeld <= int64(min(len(victims), 1))+d.Claims
	}, "all is recorded, and no key is held but the victims'")
	for _, id := range []string{"dead", "dead-k"} {
		if err := x.look.Replay(x.t.Context(), id); err != nil && !errors.Is(err, zq.ErrNotFound) && !errors.Is(err, zq.ErrLive) {
			x.t.Errorf("replay %s: %v", id, err)
		}
	}
}
