package integration_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/effect"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// A key of the queue that holds something else: whoever needs it is told so by type and changes nothing, and a
// consumer at work goes on by itself once the key is as it was.
func TestHostileKeysOfTheWrongType(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"ready", "locks", "delayed", "leases", "msg", "retry", "suspect", "dead", "deadinfo", "done", "reaped", "ops", "wake", "meta", "stats",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTrial(t)
			x.furnish()
			got := make(chan string, 100)
			c := x.start(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error { got <- d.ID; return nil }), zq.ConsumerConfig{})
			for range 4 {
				zqt.Wait(t, got, patience)
			}
			x.settled()
			ctx := t.Context()
			aside := x.rdb.Rename(ctx, x.key(name), x.key("aside")).Err() == nil
			x.must(x.rdb.Set(ctx, x.key(name), "not ours", 0).Err())
			refused := 0
			for what, err := range x.touchAll() {
				if err == nil || errors.Is(err, zq.ErrNotFound) || errors.Is(err, zq.ErrLive) {
					continue
				}
				if refused++; !errors.Is(err, zq.ErrWrongType) && !strings.Contains(err.Error(), "WRONGTYPE") {
					t.Errorf("%s with a wrong %s: %v", what, name, err)
				}
			}
			if refused == 0 {
				t.Errorf("nobody noticed the wrong %s", name)
			}
			if v, err := x.rdb.Get(ctx, x.key(name)).Result(); v != "not ours" || err != nil {
				t.Errorf("somebody's %s is now %q: %v", name, v, err)
			}
			x.must(x.rdb.Del(ctx, x.key(name)).Err())
			if aside {
				x.must(x.rdb.Rename(ctx, x.key("aside"), x.key(name)).Err())
			}
			x.send(zq.Message{ID: "later", Key: "k1"})
			for zqt.Wait(t, got, patience) != "later" {
				continue // what touchAll could enqueue
			}
			x.settled()
			x.stop(c)
			x.healthy()
		})
	}
}

// touchAll calls everything that is there, and says what each call said. What it adds is no loss.
func (x *trial) touchAll() map[string]error {
	ctx := x.t.Context()
	_, enqueue := x.prod.Enqueue(ctx, zq.Message{ID: "touch"})
	_, keyed := x.prod.Enqueue(ctx, zq.Message{ID: "touch-k", Key: "k1"})
	_, delayed := x.prod.Enqueue(ctx, zq.Message{ID: "touch-d", Delay: time.Hour})
	_, depth := x.look.Depth(ctx)
	_, counters := x.look.Counters(ctx)
	_, message := x.look.Message(ctx, "dead")
	_, letters := x.look.DeadLetters(ctx, time.Time{}, 10)
	_, verify := x.look.Verify(ctx, 0)
	_, key := x.look.ResumeKey(ctx, "k1")
	var keys error
	for _, err := range x.look.Keys(ctx) {
		keys = errors.Join(keys, err)
	}
	return map[string]error{
		"enqueue": enqueue, "enqueue with a key": keyed, "enqueue with a delay": delayed, "depth": depth, "counters": counters,
		"message": message, "dead letters": letters, "verify": verify, "resume key": key, "keys": keys,
	}
}

// Effects meet keys of every type, numbers that are none, and sums beyond the range: nothing of the ack happens,
// the message is tried again, and no half of a list is ever there.
func TestHostileEffects(t *testing.T) {
	t.Parallel()
	bad := map[string][]effect.Effect{
		"a list as a string":       {effect.Set("new", "1"), effect.IfEquals("list", "x")},
		"push to a string":         {effect.Set("new", "1"), effect.RPush("text", "x")},
		"add to a hash":            {effect.Set("new", "1"), effect.SAdd("hash", "x")},
		"a field of a set":         {effect.Set("new", "1"), effect.HSet("set", "f", "x")},
		"a sorted member of a set": {effect.Set("new", "1"), effect.ZAdd("set", 1, "x")},
		"a sum on text":            {effect.Set("new", "1"), effect.IncrBy("text", 1)},
		"a sum on nothing":         {effect.Set("new", "1"), effect.IncrBy("empty", 1)},
		"a sum on 007":             {effect.Set("new", "1"), effect.IncrBy("bond", 1)},
		"a sum on -0":              {effect.Set("new", "1"), effect.IncrBy("minus", 1)},
		"a sum on +5":              {effect.Set("new", "1"), effect.IncrBy("plus", 1)},
		"a sum on a float":         {effect.Set("new", "1"), effect.IncrBy("float", 1)},
		"a sum on hexadecimal":     {effect.Set("new", "1"), effect.IncrBy("hex", 1)},
		"a sum beyond the range":   {effect.Set("new", "1"), effect.IncrBy("most", 1)},
		"a sum below the range":    {effect.Set("new", "1"), effect.IncrBy("least", -1)},
		"a sum on int64":           {effect.Set("new", "1"), effect.IncrBy("int64", -1)},
		"a sum on a text field":    {effect.Set("new", "1"), effect.HIncrBy("hash", "text", 1)},
		"a sum on a field 00":      {effect.Set("new", "1"), effect.HIncrBy("hash", "zeros", 1)},
		"absent that is there":     {effect.Set("new", "1"), effect.IfAbsent("text")},
		"a field that is there":    {effect.Set("new", "1"), effect.IfNoField("hash", "text")},
		"a list of another length": {effect.Set("new", "1"), effect.IfLength("list", 2)},
		"another field's value":    {effect.Set("new", "1"), effect.IfField("hash", "text", "y")},
	}
	for name, list := range bad {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTrial(t)
			ctx := t.Context()
			set := func(name, value string) { x.must(x.rdb.Set(ctx, zq.EffectKey(x.queue, name), value, 0).Err()) }
			for name, value := range map[string]string{
				"text": "x", "empty": "", "bond": "007", "minus": "-0", "plus": "+5", "float": "1.5", "hex": "0x10", "most": "9007199254740991",
				"least": "-9007199254740991", "int64": "-9223372036854775808",
			} {
				set(name, value)
			}
			x.must(x.rdb.RPush(ctx, zq.EffectKey(x.queue, "list"), "x").Err())
			x.must(x.rdb.HSet(ctx, zq.EffectKey(x.queue, "hash"), "text", "x", "zeros", "00").Err())
			x.must(x.rdb.SAdd(ctx, zq.EffectKey(x.queue, "set"), "x").Err())
			ran, midway := make(chan *zq.Delivery, 10), make(chan error, 10)
			x.start(zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
				ran <- d
				if d.Attempt > 1 {
					return nil
				}
				midway <- d.Checkpoint(ctx, list...)
				return errors.Join(d.Effect(list...), d.Then(zq.Message{ID: "follow"}))
			}), zq.ConsumerConfig{RetryDelay: shortRetry})
			x.send(zq.Message{ID: "a", Key: "k"})
			zqt.Wait(t, ran, patience)
			var refused *zq.EffectError
			if err := zqt.Wait(t, midway, patience); !errors.As(err, &refused) || refused.Index != 1 {
				t.Errorf("checkpoint: %v", err)
			}
			if d := zqt.Wait(t, ran, patience); d.ID != "a" || d.Attempt != 2 || !strings.Contains(d.LastError, list[1].String()) {
				t.Errorf("second run: %+v", d)
			}
			x.settled()
			if n := x.rdb.Exists(ctx, zq.EffectKey(x.queue, "new")).Val(); n != 0 {
				t.Error("half of the list was applied")
			}
			if _, err := x.look.Message(ctx, "follow"); !errors.Is(err, zq.ErrNotFound) {
				t.Errorf("the follow-up: %v", err)
			}
			x.over(1, 0)
		})
	}
}

// A hot key, and as many keys as messages: each runs, in order where it matters.
func TestHostileKeyCounts(t *testing.T) {
	t.Parallel()
	const n = 5000
	for name, key := range map[string]func(i int) string{
		"one key":     func(int) string { return "hot" },
		"many keys":   func(i int) string { return fmt.Sprint("k", i) },
		"one is cold": func(i int) string { return map[bool]string{true: "cold", false: "hot"}[i == n-1] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTrial(t)
			batch := make([]zq.Message, n)
			for i := range batch {
				batch[i] = zq.Message{Key: key(i), Score: at(int64(i))}
			}
			x.sendAll(batch...)
			var mu sync.Mutex
			last, all := -1.0, make(chan string, n)
			cold := 0
			x.start(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
				if d.Key == "hot" {
					mu.Lock()
					if d.Score <= last {
						t.Errorf("%v ran after %v", d.Score, last)
					}
					last = d.Score
					mu.Unlock()
				}
				all <- d.Key
				return nil
			}), zq.ConsumerConfig{})
			for i := range n {
				if zqt.Wait(t, all, patience) == "cold" {
					cold = i
				}
			}
			if name == "one is cold" && cold > n/2 {
				t.Errorf("the cold key had to wait for %d of the hot one's", cold)
			}
			x.over(n, 0)
		})
	}
}
