package integration_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// sizes counts what lies in each key of the queue, lanes and claims by how many there are.
func (x *trial) sizes() map[string]int64 {
	x.t.Helper()
	ctx, out := x.t.Context(), map[string]int64{}
	for _, name := range []string{"ready", "delayed", "leases", "suspect", "dead", "done", "reaped", "opsat", "wake"} {
		out[name] = x.rdb.ZCard(ctx, x.key(name)).Val()
	}
	for _, name := range []string{"locks", "msg", "retry", "deadinfo", "ops", "meta", "stats"} {
		out[name] = x.rdb.HLen(ctx, x.key(name)).Val()
	}
	names, err := x.rdb.Keys(ctx, x.key("*")).Result()
	x.must(err)
	out["keys"] = int64(len(names))
	return out
}

func (x *trial) usedMemory() int64 {
	x.t.Helper()
	var used int64
	_, err := fmt.Sscan(x.rdb.InfoMap(x.t.Context(), "memory").Val()["Memory"]["used_memory"], &used)
	x.must(err)
	return used
}

// B25: whatever became of a message, once it is gone its id is free again, and nothing of it is in the way.
func TestFaultB25RemovedIdsAreFree(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", "k"} {
		for name, remove := range map[string]func(x *trial) error{
			"removed":  func(x *trial) error { return x.look.RemoveDead(x.t.Context(), "a") },
			"replayed": func(x *trial) error { return x.look.Replay(x.t.Context(), "a") },
			"trimmed":  func(x *trial) error { x.zadd("dead", 1, x.memberOf("dead", "a")); return nil },
		} {
			t.Run(name+" "+key, func(t *testing.T) {
				t.Parallel()
				x := newTrial(t, zq.WithDedupeWindow(0))
				ran := make(chan string, 100)
				x.start(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
					if string(d.Body) == "bad" && d.Replays == 0 {
						return zq.Dead("test", nil)
					}
					ran <- string(d.Body)
					return nil
				}), zq.ConsumerConfig{})
				x.send(zq.Message{ID: "a", Key: key, Body: []byte("bad")})
				x.drained()
				r, err := x.prod.Enqueue(t.Context(), zq.Message{ID: "a", Key: key, Body: []byte("again")})
				if err != nil || !r.Duplicate || r.State != zq.StateDead {
					t.Errorf("while it is dead: %+v, %v", r, err)
				}
				x.must(remove(x))
				if name == "replayed" {
					if body := zqt.Wait(t, ran, patience); body != "bad" {
						t.Errorf("%q ran", body)
					}
				}
				zqt.Eventually(t, patience, func() bool {
					x.zadd("wake", 0, "w") // a claim trims
					_, err := x.look.Message(t.Context(), "a")
					return errors.Is(err, zq.ErrNotFound)
				}, "it is gone")
				x.settled()
				r, err = x.prod.Enqueue(t.Context(), zq.Message{ID: "a", Key: key, Body: []byte("again")})
				if err != nil || r.Duplicate {
					t.Errorf("once it is gone: %+v, %v", r, err)
				}
				if body := zqt.Wait(t, ran, patience); body != "again" {
					t.Errorf("%q ran", body)
				}
				x.drained()
				x.healthy()
				if s := x.sizes(); s["msg"]+s["retry"]+s["dead"]+s["deadinfo"]+s["locks"]+s["done"] != 0 {
					t.Errorf("left over: %v", s)
				}
			})
		}
	}
}

// B25: a halted key stays halted when the dead letter that halted it is removed, and goes on when told to.
func TestFaultB25HaltedKeyOutlivesItsDeadLetter(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	ran := make(chan string, 10)
	x.start(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		if d.ID == "a" {
			return zq.Dead("test", nil)
		}
		ran <- d.ID
		return nil
	}), zq.ConsumerConfig{OnDeath: zq.HaltKey})
	x.sendAll(zq.Message{ID: "a", Key: "k"}, zq.Message{ID: "b", Key: "k"})
	zqt.Eventually(t, patience, func() bool { return x.depth().KeysHalted == 1 }, "the key is halted")
	x.must(x.look.RemoveDead(t.Context(), "a"))
	x.send(zq.Message{ID: "other"})
	if id := zqt.Wait(t, ran, patience); id != "other" || x.depth().KeysHalted != 1 {
		t.Errorf("%s ran past a halted key", id)
	}
	x.must2(x.look.ResumeKey(t.Context(), "k"))
	if id := zqt.Wait(t, ran, patience); id != "b" {
		t.Errorf("%s ran", id)
	}
	x.over(2+1, 0)
}

// B31: dead letters are capped: index, story and envelope together, the oldest first, and counted.
func TestFaultB31DeadLetterCap(t *testing.T) {
	t.Parallel()
	const most, all = 10, 100
	x := newTrial(t)
	cfg := zq.ConsumerConfig{DeadMax: most, Concurrency: 1, OnDeath: zq.Continue}
	x.start(zq.HandlerFunc(func(context.Context, *zq.Delivery) error { return zq.Dead("test", errMixed) }), cfg)
	for round := range 3 {
		for i := range all {
			x.send(zq.Message{ID: fmt.Sprintf("%d-%02d", round, i), Key: []string{"", "k"}[i%2], Body: make([]byte, 1000)})
		}
		zqt.Eventually(t, patience, func() bool {
			x.zadd("wake", 0, "w")
			c := x.counters()
			return c.Dead == int64((round+1)*all) && c.Purged == c.Dead-most
		}, "all are dead, and but for the last purged")
		x.drained()
		s := x.sizes()
		if s["dead"] != most || s["deadinfo"] != most || s["msg"] != most || s["retry"]+s["ready"]+s["locks"]+s["done"] != 0 {
			t.Errorf("round %d: %v", round, s)
		}
		letters, err := x.look.DeadLetters(t.Context(), time.Time{}, 100)
		if err != nil || len(letters) != most || letters[most-1].Message.ID[0] != byte('0'+round) {
			t.Errorf("round %d: %d letters, %v", round, len(letters), err)
		}
		x.healthy()
	}
	if err := x.look.Replay(t.Context(), "0-00"); !errors.Is(err, zq.ErrNotFound) {
		t.Errorf("one that was purged: %v", err)
	}
}

// B32, B51: twenty thousand messages go through in rounds, of every kind and fate. After the first rounds no key of
// the queue grows, nor Redis's memory, nor this process's goroutines and heap.
func TestFaultB32B51Soak(t *testing.T) {
	const rounds, each, warm = 10, 2000, 3
	x := newTrialOn(t, zqt.Redis(t))
	x.prod = x.producer(x.rdb, zq.WithDedupeWindow(time.Millisecond))
	var runs atomic.Int64
	for range 2 {
		x.start(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
			if n := runs.Add(1); d.Attempt == 1 && n%20 == 0 {
				return zq.RetryAfter(0, errMixed)
			}
			return nil
		}), zq.ConsumerConfig{Concurrency: 4, Lease: 300 * time.Millisecond})
	}
	var memory, heap int64
	var goroutines int
	for round := range rounds {
		batch := make([]zq.Message, each)
		for i := range batch {
			if batch[i].Key = fmt.Sprint("k", i%100); i%3 == 0 {
				batch[i].Key = ""
			}
			if i%2 == 0 {
				batch[i].ID = fmt.Sprintf("%d-%d", round, i)
			}
			batch[i].Body = []byte(strings.Repeat("x", 100))
		}
		x.sendQuietly(batch)
		want := int64((round + 1) * each)
		zqt.Eventually(t, patience, func() bool { return x.counters().Acked == want }, "the round is acked")
		zqt.Eventually(t, patience, func() bool { return x.sizes()["done"] == 0 && x.sizes()["leases"] == 0 }, "dedupe records are forgotten")
		s := x.sizes()
		if s["msg"]+s["ready"]+s["delayed"]+s["retry"]+s["locks"]+s["dead"]+s["deadinfo"]+s["suspect"] != 0 {
			t.Errorf("round %d leaves %v", round, s)
		}
		if s["keys"] > 8 || s["ops"] > 50 || s["reaped"] > 20 || s["meta"] > 4 || s["stats"] > 12 {
			t.Errorf("round %d: grown: %v", round, s)
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if round < warm {
			memory, heap, goroutines = x.usedMemory(), int64(m.HeapAlloc), runtime.NumGoroutine()
			continue
		}
		if now := x.usedMemory(); now > memory+1<<20 {
			t.Errorf("round %d: Redis uses %d bytes, %d after round %d", round, now, memory, warm-1)
		}
		if now := int64(m.HeapAlloc); now > heap+8<<20 {
			t.Errorf("round %d: the heap has %d bytes, %d after round %d", round, now, heap, warm-1)
		}
		if now := runtime.NumGoroutine(); now > goroutines+20 {
			t.Errorf("round %d: %d goroutines, %d after round %d", round, now, goroutines, warm-1)
		}
	}
	x.over(rounds*each, 0)
}

// sendQuietly leaves no trace of a batch in the history, which would grow by it.
func (x *trial) sendQuietly(batch []zq.Message) {
	x.t.Helper()
	results, err := x.prod.EnqueueBatch(x.t.Context(), batch)
	x.must(err)
	for _, r := range results {
		x.must(r.Err)
	}
}
