package integration_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/effect"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// Redis runs full: enqueue says so by type and adds nothing, what works off the queue goes on, also one that
// starts only then, and with room again all is as before.
func TestFaultOutOfMemory(t *testing.T) {
	t.Parallel()
	x := newTrialOn(t, zqt.Redis(t))
	running := make(chan string, 100_000)
	fill := x.fillUp()
	h := zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		if d.Attempt == 1 && d.Key == "k1" {
			return zq.RetryAfter(time.Millisecond, errMixed) // needs memory, and gets it
		}
		running <- d.ID
		return nil
	})
	x.unchanged("an enqueue with no memory left", func() {
		r, err := x.prod.Enqueue(t.Context(), zq.Message{ID: "refused", Body: []byte("x")})
		if !errors.Is(err, zq.ErrStoreFull) || errors.Is(err, zq.ErrOutcomeUnknown) || r.ID != "" {
			t.Errorf("%+v, %v", r, err)
		}
		results, err := x.prod.EnqueueBatch(t.Context(), []zq.Message{{ID: "refused"}, {ID: "refused too", Key: "k1"}})
		if !errors.Is(err, zq.ErrStoreFull) || !errors.Is(results[0].Err, zq.ErrStoreFull) || !errors.Is(results[1].Err, zq.ErrStoreFull) {
			t.Errorf("%+v, %v", results, err)
		}
	})
	c := x.start(h, zq.ConsumerConfig{Concurrency: 4, Lease: 2 * time.Second})
	for range fill {
		zqt.Wait(t, running, patience)
	}
	x.over(fill, 0)
	if s := c.Stats(); s.Lost > 0 || s.Acked != int64(fill) {
		t.Errorf("%+v", s)
	}
	r, err := x.prod.Enqueue(t.Context(), zq.Message{ID: "refused", Body: []byte("x")})
	if err != nil || r.Duplicate {
		t.Errorf("with room again: %+v, %v", r, err)
	}
	if id := zqt.Wait(t, running, patience); id != "refused" {
		t.Errorf("%s ran", id)
	}
	x.over(fill+1, 0)
}

// With Redis full a consumer that stops gives back what its deaf handlers hold, as it does otherwise: nobody
// has to wait for its lease.
func TestFaultOutOfMemoryGivesBack(t *testing.T) {
	t.Parallel()
	x := newTrialOn(t, zqt.Redis(t))
	inside, done := make(chan struct{}, 10), make(chan struct{})
	t.Cleanup(func() { close(done) })
	x.sendAll(zq.Message{ID: "a"}, zq.Message{ID: "b"}, zq.Message{ID: "c"})
	c := x.start(zq.HandlerFunc(func(context.Context, *zq.Delivery) error {
		inside <- struct{}{}
		<-done
		return nil
	}), zq.ConsumerConfig{Concurrency: 3, DrainTime: time.Millisecond, Grace: time.Millisecond})
	for range 3 {
		zqt.Wait(t, inside, patience)
	}
	accepted := x.fillUp()
	x.must(x.rdb.ConfigSet(t.Context(), "maxmemory", "1mb").Err()) // no matter what is freed on the way
	var deaf *zq.DrainError
	if err := c.Stop(t.Context()); !errors.As(err, &deaf) || deaf.Running != 3 {
		t.Errorf("stop: %v", err)
	}
	if d := x.depth(); d.Running != 0 || d.Claims != 0 || d.Pending != int64(accepted)+3 {
		t.Errorf("%d and three messages went in: %+v", accepted, d)
	}
	x.healthy()
}

// fillUp lowers the server's limit and enqueues until it is full. It says how many messages went in.
func (x *trial) fillUp() (accepted int) {
	x.t.Helper()
	ctx := x.t.Context()
	info := x.rdb.InfoMap(ctx, "memory").Val()
	used, err := strconv.ParseInt(info["Memory"]["used_memory"], 10, 64)
	x.must(err)
	x.must(x.rdb.ConfigSet(ctx, "maxmemory", fmt.Sprint(used+(2<<20))).Err())
	body := bytes.Repeat([]byte("x"), 10_000)
	for {
		_, err := x.prod.Enqueue(ctx, zq.Message{Key: []string{"", "k1", "k2"}[accepted%3], Body: body})
		if errors.Is(err, zq.ErrStoreFull) {
			break
		}
		x.must(err)
		accepted++
	}
	for { // to the last byte, by somebody else
		if err := x.rdb.RPush(ctx, x.key("x:filler"), "yyyyyyyyyyyyyyyy").Err(); err != nil {
			return accepted
		}
	}
}

// A newer library's queue is left alone, with an error that can be told from others.
func TestFaultNewerLayout(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{"2", "999", "two", "1e9"} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			x := newTrial(t)
			x.send(zq.Message{ID: "old"})
			x.hset("meta", "layout", layout)
			x.unchanged("a newer layout", func() {
				if _, err := x.prod.Enqueue(t.Context(), zq.Message{ID: "a"}); !errors.Is(err, zq.ErrNewerLayout) {
					t.Errorf("enqueue: %v", err)
				}
				c, err := zq.NewConsumer(x.rdb, x.queue, zq.HandlerFunc(func(context.Context, *zq.Delivery) error {
					t.Error("a message of a newer layout ran")
					return nil
				}), zq.ConsumerConfig{})
				x.must(err)
				ran := make(chan error, 1)
				go func() { ran <- c.Run(context.WithoutCancel(t.Context())) }()
				if err := zqt.Wait(t, ran, patience); !errors.Is(err, zq.ErrNewerLayout) {
					t.Errorf("run: %v", err)
				}
				if err := c.Start(t.Context()); !errors.Is(err, zq.ErrNewerLayout) {
					t.Errorf("start: %v", err)
				}
			})
			x.hset("meta", "layout", "1")
			got := x.echoes()
			if d := zqt.Wait(t, got, patience); d.ID != "old" {
				t.Errorf("got %s", d.ID)
			}
		})
	}
}

// A consumer that is at work when the layout changes stops by itself.
func TestFaultNewerLayoutUnderWay(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	c, err := zq.NewConsumer(x.rdb, x.queue, zq.HandlerFunc(func(context.Context, *zq.Delivery) error { return nil }), zq.ConsumerConfig{})
	x.must(err)
	x.must(c.Start(t.Context()))
	x.hset("meta", "layout", "2")
	x.zadd("wake", 0, "w")
	zqt.Wait(t, c.Done(), patience)
	if err := c.Stop(t.Context()); !errors.Is(err, zq.ErrNewerLayout) {
		t.Errorf("%v", err)
	}
	if state, _ := c.Health(); state != "stopped" {
		t.Errorf("health %s", state)
	}
}

// MinReplicas with a replica, without it, and with it again.
func TestFaultMinReplicas(t *testing.T) {
	t.Parallel()
	master := zqt.Redis(t, zqt.WithConfig("repl-diskless-sync-delay", "0"))
	host, port, _ := strings.Cut(master.Addr(), ":")
	replica := zqt.Redis(t, zqt.WithConfig("replicaof", host, port))
	x := newTrialOn(t, master)
	zqt.Eventually(t, patience, func() bool {
		return strings.Contains(x.rdb.Info(t.Context(), "replication").Val(), "state=online")
	}, "the replica is in step")
	p := x.producer(x.rdb, zq.MinReplicas(1, 2*time.Second))
	read := replica.Client()
	for i := range 20 {
		r, err := p.Enqueue(t.Context(), zq.Message{ID: fmt.Sprint(i)})
		if err != nil || r.Sequence == 0 {
			t.Fatalf("with a replica: %+v, %v", r, err)
		}
		if !read.HExists(t.Context(), x.key("msg"), r.ID).Val() {
			t.Errorf("%s is confirmed, and the replica does not have it", r.ID)
		}
	}
	replica.Stop()
	short := x.producer(x.rdb, zq.MinReplicas(1, 20*time.Millisecond))
	r, err := short.Enqueue(t.Context(), zq.Message{ID: "alone"})
	x.unconfirmed(r.Sequence > 0 && r.ID == "alone" && !r.Duplicate, err)
	results, err := short.EnqueueBatch(t.Context(), []zq.Message{{ID: "alone"}, {ID: "alone too"}})
	x.unconfirmed(results[0].Duplicate && results[0].State == zq.StatePending && results[1].Sequence > r.Sequence, err)
	x.unconfirmed(true, results[1].Err)
	x.waitsInFull()
	replica.Restart()
	zqt.Eventually(t, patience, func() bool {
		_, err := short.Enqueue(t.Context(), zq.Message{ID: "alone"})
		return err == nil
	}, "the replica has it")
	if !read.HExists(t.Context(), x.key("msg"), "alone too").Val() {
		t.Error("the replica lacks what was not confirmed")
	}
	x.healthy()
}

// waitsInFull expects a wait that is longer than the client's own patience to end with its own answer.
func (x *trial) waitsInFull() {
	x.t.Helper()
	const within = 600 * time.Millisecond
	hasty := x.srv.Client(func(o *redis.Options) { o.ReadTimeout = 100 * time.Millisecond })
	start := time.Now()
	r, err := x.producer(hasty, zq.MinReplicas(1, within)).Enqueue(x.t.Context(), zq.Message{ID: "patient"})
	x.unconfirmed(r.ID == "patient" && r.Sequence > 0, err)
	if took := time.Since(start); took < within-10*time.Millisecond || took > 3*within {
		x.t.Errorf("the wait of %v took %v", within, took)
	}
}

// unconfirmed expects a valid receipt beside an error that says how many replicas answered.
func (x *trial) unconfirmed(receipt bool, err error) {
	x.t.Helper()
	var short *zq.ReplicationError
	if !receipt || !errors.As(err, &short) || short.Want != 1 || short.Got != 0 || !errors.Is(err, zq.ErrOutcomeUnknown) {
		x.t.Errorf("a valid receipt: %v, error: %v", receipt, err)
	}
}

// commands is all that producers, consumers and inspectors need of Redis, beside the handshake. What stands
// here is what the documentation tells an operator to allow.
func commands() []string {
	return []string{
		"eval", "evalsha", "time", "type", "exists", "del", "get", "set", "incrby", "pexpire", "llen", "ltrim", "rpush", "sadd", "srem",
		"hdel", "hexists", "hget", "hgetall", "hincrby", "hkeys", "hlen", "hmget", "hscan", "hset", "hsetnx", "hvals",
		"zadd", "zcard", "zmpop", "zmscore", "zrange", "zrem", "zscan", "zscore", "bzpopmin", "ping",
	}
}

// user makes a user with the rights for the queues' keys and these commands, and a client of it.
func (x *trial) user(name string, allowed []string) *redis.Client {
	x.t.Helper()
	rules := []any{"ACL", "SETUSER", name, "reset", "on", ">pw", "~zq:*"}
	for _, c := range allowed {
		rules = append(rules, "+"+c)
	}
	x.must(x.rdb.Do(x.t.Context(), rules...).Err())
	return x.srv.Client(func(o *redis.Options) { o.Username, o.Password = name, "pw" })
}

// A user limited to the queues' keys and these commands can do all there is.
func TestFaultACL(t *testing.T) {
	t.Parallel()
	x := newTrialOn(t, zqt.Redis(t))
	x.rdb = x.user("worker", commands())
	x.prod = x.producer(x.rdb)
	look, err := zq.NewInspector(x.rdb, x.queue)
	x.must(err)
	x.look = look
	x.sendAll(zq.Message{ID: "a", Key: "k"}, zq.Message{ID: "b", Key: "k"}, zq.Message{ID: "c", Delay: time.Millisecond}, zq.Message{})
	all := []effect.Effect{
		effect.Set("s", "1"), effect.IncrBy("n", 1), effect.HSet("h", "f", "1"), effect.HIncrBy("h", "n", 1), effect.HDel("h2", "g"),
		effect.SAdd("set", "m"), effect.SRem("set", "o"), effect.ZAdd("z", 1, "m"), effect.ZRem("z", "o"), effect.RPush("l", "v"),
		effect.LTrim("l", 0, -1), effect.Del("d"), effect.Expire("s", time.Hour), effect.IfAbsent("none"), effect.IfExists("s"),
		effect.IfEquals("s", "1"), effect.IfField("h", "f", "1"), effect.IfNoField("h", "x"), effect.IfLength("l", 1),
	}
	died := make(chan string, 10)
	c := x.start(zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
		switch {
		case d.ID == "a" && d.Replays == 0:
			died <- d.ID
			return zq.Dead("test", nil)
		case d.ID == "b":
			return errors.Join(d.Checkpoint(ctx, all[:13]...), d.Effect(all[13:]...), d.Then(zq.Message{ID: "e"}))
		}
		return nil
	}), zq.ConsumerConfig{})
	zqt.Wait(t, died, patience)
	x.drained()
	x.must(look.Replay(t.Context(), "a"))
	x.drained()
	x.must2(look.Pause(t.Context()))
	x.must2(look.Resume(t.Context()))
	for _, err := range look.Keys(t.Context()) {
		x.must(err)
	}
	x.over(5, 0)
	if state, trouble := c.Health(); len(trouble) > 0 || c.Stats().Errors > 0 {
		t.Errorf("%s, trouble with %q, %d errors", state, trouble, c.Stats().Errors)
	}
	if n := x.rdb.Get(t.Context(), zq.EffectKey(x.queue, "n")).Val(); n != "1" {
		t.Errorf("the effects were applied %s times", n)
	}
}

// A user who lacks one command that the queue's writes need is refused at the start, before anything is
// claimed, with an error that says what it is about.
func TestFaultACLOneCommandLess(t *testing.T) {
	t.Parallel()
	x := newTrialOn(t, zqt.Redis(t))
	x.send(zq.Message{ID: "a", Key: "k"})
	x.send(zq.Message{ID: "b"})
	x.must2(x.look.Pause(t.Context())) // one that starts after all must not change anything either
	without := map[string]string{}
	for _, missing := range commands() {
		allowed := slices.DeleteFunc(commands(), func(c string) bool { return c == missing })
		rdb := x.user("without-"+missing, allowed)
		c, err := zq.NewConsumer(rdb, x.queue, zq.HandlerFunc(func(context.Context, *zq.Delivery) error {
			t.Errorf("without %s: a message ran", missing)
			return nil
		}), zq.ConsumerConfig{})
		x.must(err)
		x.unchanged("a start without "+missing, func() {
			if err := c.Start(t.Context()); err == nil {
				without[missing] = "starts"
				x.must(c.Stop(t.Context()))
			} else if text := strings.ToLower(err.Error()); !strings.Contains(text, "permission") && !strings.Contains(text, "can't run this command") && !strings.Contains(text, "no permissions to run") {
				without[missing] = err.Error()
			}
		})
	}
	// What a consumer can do without: what only the inspector asks, and the ping of a check.
	for _, spare := range []string{"hgetall", "hscan", "zscan", "hvals", "ping"} {
		delete(without, spare)
	}
	for _, missing := range slices.Sorted(maps.Keys(without)) {
		t.Errorf("without %s: %s", missing, without[missing])
	}
}
