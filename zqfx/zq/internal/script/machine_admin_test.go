package script_test

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// advance moves the one clock that model and store share, most often to around an instant at which something
// changes by itself; now and then it goes back.
func (x *machine) advance(t *rapid.T) {
	now := x.m.now
	steps := []int64{now, now + 1, now + leaseTime/2, now + 2*leaseTime, now - 3_000_000, now + 25*hour}
	if soon := x.m.instants(); len(soon) > 0 {
		at := oneOf(t, "instant", soon...)
		steps = append(steps, at-1, at, at, at, at+1)
	}
	x.m.now = oneOf(t, "time", steps...)
	t.Logf("> it is %d", x.m.now)
	if err := x.s.setTime(x.m.now); err != nil {
		t.Fatalf("clock: %v", err)
	}
}

func (x *machine) reap(t *rapid.T) {
	u := x.upkeep(t)
	t.Logf("> reap %+v", u)
	reaped, promoted, err := x.s.set.Reap(x.s.ctx, x.s.run, x.s.names, u.call())
	wantReaped, wantPromoted := x.m.reapCall(u)
	same(t, "reap", [2]int{wantReaped, wantPromoted}, [2]int{reaped, promoted}, err)
}

// crash lets the worker die whose lease ends first, and somebody notice it.
func (x *machine) crash(t *rapid.T) {
	if len(x.m.leases) == 0 {
		t.SkipNow()
	}
	x.m.now = max(x.m.now, slices.Min(slices.Collect(maps.Values(x.m.leases))))
	t.Logf("> it is %d", x.m.now)
	if err := x.s.setTime(x.m.now); err != nil {
		t.Fatalf("clock: %v", err)
	}
	x.reap(t)
}

func (x *machine) pause(t *rapid.T) {
	on := rapid.IntRange(0, 5).Draw(t, "on") == 5
	t.Logf("> pause %t", on)
	got, err := x.s.set.Pause(x.s.ctx, x.s.run, x.s.names, on)
	same(t, "pause", x.m.pause(on), got, err)
}

// replay sends back a dead letter, or tries to with something that is none.
func (x *machine) replay(t *rapid.T) {
	pool := x.m.dead.sorted()
	if len(pool) == 0 || rapid.IntRange(0, 3).Draw(t, "other") == 0 {
		for member := range x.m.everKnown {
			pool = append(pool, member)
		}
		pool = append(pool, "plain:1")
		slices.Sort(pool)
	}
	member, atEnd := oneOf(t, "member", pool...), rapid.Bool().Draw(t, "at end")
	name := x.token(t, "r")
	if len(x.replays) > 0 && rapid.IntRange(0, 3).Draw(t, "again") == 0 {
		name = oneOf(t, "token", x.replays...)
	}
	t.Logf("> replay %q %q %t", name, member, atEnd)
	got, err := x.s.set.Replay(x.s.ctx, x.s.run, x.s.names, name.String(), member, atEnd)
	if x.late(t, name, err) {
		return
	}
	done, state := x.m.replay(name, member, atEnd)
	same(t, "replay", script.Replayed{Done: done, State: state}, got, err)
	if done {
		x.reached["replayed"]++
		x.replays = append(x.replays, name)
	}
}

func (x *machine) removeDead(t *rapid.T) {
	pool := append(x.m.dead.sorted(), "plain:1", "\x0100000000000001:job:1")
	member := oneOf(t, "member", pool...)
	t.Logf("> remove dead %q", member)
	got, err := x.s.set.RemoveDead(x.s.ctx, x.s.run, x.s.names, member)
	same(t, "remove dead", x.m.removeDead(member), got, err)
}

func (x *machine) resumeKey(t *rapid.T) {
	key := oneOf(t, "key", orderingKeys()...)
	for name, l := range x.m.locks {
		if l.owner == halted && name < key {
			key = name
		}
	}
	t.Logf("> resume key %q", key)
	got, err := x.s.set.ResumeKey(x.s.ctx, x.s.run, x.s.names, key)
	same(t, "resume key", x.m.resumeKey(key), got, err)
}

// plain puts a member into ready as redis-cli would. Nobody is woken by that.
func (x *machine) plain(t *rapid.T) {
	member := oneOf(t, "member", "plain:1", "plain:2", "\x01 no message", "")
	score := oneOf(t, "score", 0.1, -1.5, 1e300, 9007199254740991, math.Pi)
	x.silent = true
	x.m.ready[member] = score
	t.Logf("> plain %q %v", member, score)
	if err := x.s.rdb.Do(x.s.ctx, "ZADD", x.s.names.Ready, number(score), member).Err(); err != nil {
		t.Fatalf("zadd: %v", err)
	}
}

// flushScripts makes the server forget the scripts, as a restart or a failover does.
func (x *machine) flushScripts(t *rapid.T) {
	if err := x.s.rdb.ScriptFlush(x.s.ctx).Err(); err != nil {
		t.Fatalf("script flush: %v", err)
	}
}

// find compares what the queue says of one id.
func (x *machine) find(t *rapid.T) {
	id := oneOf(t, "id", ids()...)
	got, err := x.s.set.Find(x.s.ctx, x.s.run, x.s.names, id)
	got.Score, got.Record.Score, got.Story.Score = "", "", canonical(got.Story.Score)
	want := script.Found{Letter: x.m.letter(id)}
	if msg := x.m.messages[id]; msg != nil {
		v := x.m.view()
		want = script.Found{
			Letter: want.Letter, Member: msg.member, Envelope: msg.body, Record: v.Records[id], Story: v.Stories[id],
			Lock: v.Locks[msg.key],
		}
		want.Record.Score = ""
	} else if want.Letter == "o" {
		want.DoneUntil = x.m.done[id]
	}
	same(t, "find", want, got, err)
}

// keys compares what the queue says of the keys that are held or wait.
func (x *machine) keys(t *rapid.T) {
	got := map[string]script.KeyState{}
	for cursor := uint64(0); ; {
		page, next, err := x.s.set.Keys(x.s.ctx, x.s.run, x.s.names, cursor, 2)
		if err != nil {
			t.Fatalf("keys: %v", err)
		}
		for _, one := range page {
			got[one.Key] = one
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	want := map[string]script.KeyState{}
	for key, l := range x.m.locks {
		head, _, _ := x.m.waiting(key).first()
		want[key] = script.KeyState{Key: key, Lock: fmt.Sprint(l), Head: head, Waiting: int64(len(x.m.waiting(key))), Due: l.due}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("keys (-model +redis):\n%s", diff)
	}
}
