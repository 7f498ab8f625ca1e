package integration_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/effect"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// B18: more consumers than the application's pool has connections, and that pool drained by others: what is
// idle stops at once although its pop is blocked, heartbeats flow, and the application's own calls get through.
func TestFaultB18BlockedPopsStarveNobody(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	small := x.srv.Client(func(o *redis.Options) { o.PoolSize, o.PoolTimeout, o.MaxRetries = 2, 300*time.Millisecond, -1 })
	const lease = 1500 * time.Millisecond
	busy, done := make(chan string, 10), make(chan struct{})
	h := zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		busy <- d.ID
		<-done
		return nil
	})
	var all []*zq.Consumer
	for range 8 {
		all = append(all, x.startOn(small, h, zq.ConsumerConfig{Concurrency: 1, Lease: lease}))
	}
	for _, c := range all {
		zqt.Eventually(t, patience, func() bool { state, _ := c.Health(); return state == "idle" }, "all wait for work")
	}
	x.must(small.Ping(t.Context()).Err())
	x.send(zq.Message{ID: "a"})
	x.send(zq.Message{ID: "b"})
	zqt.Wait(t, busy, patience)
	zqt.Wait(t, busy, patience)

	// Somebody else takes the pool for longer than the lease.
	var blocked sync.WaitGroup
	for i := range 2 {
		blocked.Go(func() {
			_ = small.BLPop(context.WithoutCancel(t.Context()), 2*time.Second, x.key(fmt.Sprint("x:none", i))).Err()
		})
	}
	blocked.Wait()
	for _, c := range all {
		if s := c.Stats(); s.Lost > 0 || s.Errors > 0 {
			t.Errorf("while the pool was taken: %+v", s)
		}
	}
	close(done)
	x.drained()

	var stops sync.WaitGroup
	for _, c := range all {
		stops.Go(func() {
			start := time.Now()
			if err := c.Stop(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("an idle consumer took %v to stop", took)
			}
		})
	}
	stops.Wait()
	x.must(small.Ping(t.Context()).Err())
	x.over(2, 0)
}

// B21: the server forgets its scripts while producers and consumers are at work, over and over.
func TestFaultB21ScriptFlush(t *testing.T) {
	t.Parallel()
	x := newTrialOn(t, zqt.Redis(t)) // it hits whoever shares the server
	ctx, stop := context.WithCancel(t.Context())
	var flusher sync.WaitGroup
	flushed := 0
	flusher.Go(func() {
		tick := time.NewTicker(3 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := x.rdb.ScriptFlush(context.WithoutCancel(ctx)).Err(); err != nil {
					t.Error(err)
				}
				flushed++
			}
		}
	})
	out := &sent{}
	team := x.hire(3, zq.ConsumerConfig{Concurrency: 4, RetryDelay: shortRetry}, mix{Fail: 10, Postpone: 10}.fate(x.dice))
	x.produce(x.prod, traffic{name: "a", messages: 1500, keys: 10}, out)
	x.drained()
	stop()
	flusher.Wait()
	team.dismiss()
	x.over(1500, 0)
	x.inOrder()
	if flushed < 10 {
		t.Errorf("this is no trial: %d flushes", flushed)
	}
}

// The same for a pipeline with WAIT, where go-redis does not fall back by itself.
func TestFaultB21ScriptFlushInAPipeline(t *testing.T) {
	t.Parallel()
	x := newTrialOn(t, zqt.Redis(t))
	p := x.producer(x.rdb, zq.MinReplicas(1, time.Millisecond))
	for i := range 3 {
		x.must(x.rdb.ScriptFlush(t.Context()).Err())
		r, err := p.Enqueue(t.Context(), zq.Message{ID: fmt.Sprint(i)})
		if short := (*zq.ReplicationError)(nil); !errors.As(err, &short) || r.Duplicate || r.Sequence == 0 {
			t.Errorf("message %d: %+v, %v", i, r, err)
		}
	}
	if d := x.depth(); d.Pending != 3 {
		t.Errorf("%+v", d)
	}
	x.healthy()
}

// The server is restarted in the middle of the load: its scripts are gone, what it acknowledged is not.
func TestFaultB21Restart(t *testing.T) {
	t.Parallel()
	x := newTrialOn(t, zqt.Redis(t, zqt.WithAppendOnly()))
	out := &sent{}
	team := x.hire(2, zq.ConsumerConfig{Concurrency: 4, RetryDelay: shortRetry}, mix{Fail: 10}.fate(x.dice))
	var producing sync.WaitGroup
	producing.Go(func() { x.produce(x.prod, traffic{name: "a", messages: 1500, keys: 10}, out) })
	for i := range 2 {
		zqt.Eventually(t, patience, func() bool { return len(ordered(x.rec.Events(), zqt.Succeeded)) > 300*(i+1) }, "under way")
		x.srv.Restart()
	}
	producing.Wait()
	x.drained()
	team.dismiss()
	x.over(1500, 0)
	x.inOrder()
}

// oneNodeCluster is a cluster of a single node that has all slots.
func oneNodeCluster(t *testing.T) (*zqt.Server, *redis.ClusterClient) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the default bus port may be beyond the last one
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	srv := zqt.Redis(t, zqt.WithConfig("cluster-enabled", "yes"), zqt.WithConfig("cluster-port", port))
	direct := srv.Client()
	if err := direct.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	zqt.Eventually(t, patience, func() bool {
		return strings.Contains(direct.ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	}, "the cluster is up")
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{srv.Addr()}})
	t.Cleanup(func() { rdb.Close() })
	return srv, rdb
}

// B22: everything works on a cluster client, and every key of a queue is in one slot, whatever keys, ids and
// names its messages have.
func TestFaultB22ClusterHashTags(t *testing.T) {
	t.Parallel()
	srv, rdb := oneNodeCluster(t)
	x := newTrialOn(t, srv)
	x.prod = x.producerOn(rdb)
	look, err := zq.NewInspector(rdb, x.queue)
	x.must(err)
	x.look = look
	odd := []string{"", "}x", "a}b", "{", "}", "{}", "{other}", ":", "a:b", "zq:{q}:ready", "k\xff"}
	var msgs []zq.Message
	for i, key := range odd {
		msgs = append(msgs, zq.Message{ID: fmt.Sprintf("%d {%d} a}b", i, i), Key: key}, zq.Message{Key: key, Delay: time.Millisecond})
	}
	x.sendAll(msgs...)
	slots := map[int64]bool{}
	x.startOn(rdb, zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
		if d.Attempt == 1 {
			return zq.RetryAfter(time.Millisecond, errMixed)
		}
		if d.Attempt == 2 {
			return errors.Join(d.Checkpoint(ctx, effect.IncrBy("}midway{", 1)), zq.RetryAfter(time.Millisecond, errMixed))
		}
		if strings.Contains(d.ID, "followed") {
			return nil
		}
		if d.Key == "}x" && d.Replays == 0 {
			return zq.Dead("test", nil)
		}
		return errors.Join(d.Effect(effect.IncrBy("}n{", 1)), d.Then(zq.Message{ID: d.ID + " followed", Key: d.Key}))
	}), zq.ConsumerConfig{Concurrency: 4})
	x.drained()
	letters, err := x.look.DeadLetters(t.Context(), time.Time{}, 10)
	if err != nil || len(letters) != 2 {
		t.Errorf("%d dead letters, want 2: %v", len(letters), err)
	}
	for _, l := range letters {
		x.must(x.look.Replay(t.Context(), l.Message.ID))
	}
	x.over(2*len(msgs), 0)
	if n := rdb.Get(t.Context(), zq.EffectKey(x.queue, "}n{")).Val(); n != fmt.Sprint(len(msgs)) {
		t.Errorf("counted %s, want %d", n, len(msgs))
	}
	names, err := x.rdb.Keys(t.Context(), "*").Result()
	x.must(err)
	for _, name := range names {
		slots[x.rdb.ClusterKeySlot(t.Context(), name).Val()] = true
	}
	if len(slots) != 1 || len(names) < 5 {
		t.Errorf("%d keys in %d slots: %q", len(names), len(slots), names)
	}
	x.waitsForReplicas(rdb)
}

func (x *trial) producerOn(rdb redis.UniversalClient, opts ...zq.ProducerOption) *zq.Producer {
	x.t.Helper()
	p, err := zq.NewProducer(rdb, x.queue, opts...)
	x.must(err)
	return p
}

// waitsForReplicas expects that WAIT follows its write to the node of the queue.
func (x *trial) waitsForReplicas(rdb redis.UniversalClient) {
	x.t.Helper()
	p := x.producerOn(rdb, zq.MinReplicas(1, 5*time.Millisecond))
	r, err := p.Enqueue(x.t.Context(), zq.Message{ID: "replicated"})
	if short := (*zq.ReplicationError)(nil); !errors.As(err, &short) || short.Got != 0 || short.Want != 1 || r.ID != "replicated" || r.Duplicate {
		x.t.Errorf("%+v, %v", r, err)
	}
}

// Two clusters' worth of queues: neighbours whose names nest do not meet.
func TestFaultB24NestedNames(t *testing.T) {
	t.Parallel()
	rdb := zqt.Redis(t).Client()
	names := []string{"a", "a.b", "a-b", "a_b", "ab", "a.b.c", "A"}
	got := map[string]chan string{}
	for _, q := range names {
		got[q] = make(chan string, 100)
		c, err := zq.NewConsumer(rdb, q, zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
			got[q] <- d.Queue + " " + string(d.Body)
			return nil
		}), zq.ConsumerConfig{})
		if err == nil {
			err = c.Start(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Stop(context.Background()) })
	}
	for _, q := range slices.Backward(names) {
		p, err := zq.NewProducer(rdb, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"", "a", "b:c", "lane:a"} {
			if _, err := p.Enqueue(t.Context(), zq.Message{ID: "id " + key, Key: key, Body: []byte(q)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, q := range names {
		for range 4 {
			if s := zqt.Wait(t, got[q], patience); s != q+" "+q {
				t.Errorf("queue %s got %q", q, s)
			}
		}
	}
}
