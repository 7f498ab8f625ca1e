package script_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// dump is every key of the queue with its type and contents, in the form in which Redis would save it.
func (s *store) dump(t *testing.T) map[string]string {
	t.Helper()
	all, err := s.rdb.Keys(s.ctx, strings.TrimSuffix(s.clock, clockKey)+"*").Result()
	if err != nil {
		t.Fatalf("keys: %v", err)
	}
	out := map[string]string{}
	for _, key := range all {
		if out[key], err = s.rdb.Dump(s.ctx, key).Result(); err != nil {
			t.Fatalf("dump %s: %v", key, err)
		}
	}
	return out
}

func noChange(t *testing.T, before, after map[string]string) {
	t.Helper()
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("something was changed (-before +after):\n%s", diff)
	}
}

// keysOf notes the KEYS of each script that runs through it, and runs none.
type keysOf struct{ names []string }

func (k *keysOf) EvalSha(ctx context.Context, _ string, names []string, _ ...any) *redis.Cmd {
	k.names = names
	cmd := redis.NewCmd(ctx)
	cmd.SetErr(context.Canceled)
	return cmd
}

func (k *keysOf) Eval(ctx context.Context, sha string, names []string, args ...any) *redis.Cmd {
	return k.EvalSha(ctx, sha, names, args...)
}

func freshQueue(t *testing.T, rdb *redis.Client, set *script.Set) *store {
	t.Helper()
	s := newStore(t.Context(), rdb, set, zqtest.Queue(t))
	furnish(t, s)
	return s
}

// Every key of every script is overwritten by something else in turn: the script says so and changes nothing.
func TestDamageWrongType(t *testing.T) {
	t.Parallel()
	rdb, set := zqtest.Shared(t).Client(), virtualSet()
	for _, c := range scriptCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := freshQueue(t, rdb, set)
			member := c.lookUp(s)
			var spy keysOf
			if err := c.run(s.through(&spy), member); err == nil || len(spy.names) == 0 {
				t.Fatalf("no call was seen: %v", err)
			}
			for _, key := range spy.names {
				s.withWrongType(t, key, func() {
					before := s.dump(t)
					err := c.run(s, member)
					if err == nil || !strings.Contains(err.Error(), "ZQTYPE "+key+" holds a ") {
						t.Errorf("with a wrong type at %s: %v", key, err)
					}
					noChange(t, before, s.dump(t))
				})
			}
		})
	}
}

// withWrongType runs f twice while key holds something else.
func (s *store) withWrongType(t *testing.T, key string, f func()) {
	t.Helper()
	const aside = "aside"
	there := s.rdb.Rename(s.ctx, key, s.clock+aside).Err() == nil
	for _, put := range []func() error{
		func() error { return s.rdb.Set(s.ctx, key, "not ours", 0).Err() },
		func() error { return s.rdb.RPush(s.ctx, key, "not", "ours").Err() },
	} {
		if err := put(); err != nil {
			t.Fatalf("damage %s: %v", key, err)
		}
		f()
		if err := s.rdb.Del(s.ctx, key).Err(); err != nil {
			t.Fatalf("undo %s: %v", key, err)
		}
	}
	if !there {
		return
	}
	if err := s.rdb.Rename(s.ctx, s.clock+aside, key).Err(); err != nil {
		t.Fatalf("undo %s: %v", key, err)
	}
}

// A lane that was overwritten costs its own key only, and what is not lost is a dead letter.
func TestDamageLane(t *testing.T) {
	t.Parallel()
	rdb, set := zqtest.Shared(t).Client(), virtualSet()
	refuses := []string{"enqueue batch", "replay now, keyed"}
	for _, c := range scriptCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := freshQueue(t, rdb, set)
			member := c.lookUp(s)
			lanes := []string{"a", "b", "c", "h", "k", "m", "q", "s"}
			for _, key := range lanes {
				if err := rdb.Del(s.ctx, s.names.Lane(key)).Err(); err != nil {
					t.Fatal(err)
				}
				if err := rdb.Set(s.ctx, s.names.Lane(key), "not ours", 0).Err(); err != nil {
					t.Fatal(err)
				}
			}
			before := s.dump(t)
			err := c.run(s, member)
			if slices.Contains(refuses, c.name) {
				if err == nil || !strings.Contains(err.Error(), "ZQTYPE ") {
					t.Errorf("want a refusal, got %v", err)
				}
				noChange(t, before, s.dump(t))
				return
			}
			if c.name == "settle ack with" || c.name == "settle ack with, keyed" {
				if err == nil || !strings.Contains(err.Error(), "refused") {
					t.Errorf("want a refused follow-up, got %v", err)
				}
				return
			}
			if err != nil {
				t.Error(err)
			}
			s.onlyLanesAreDamaged(t, c.name)
		})
	}
}

// onlyLanesAreDamaged lets verify find nothing but the damage that was done, and sees that other keys go on.
func (s *store) onlyLanesAreDamaged(t *testing.T, name string) {
	t.Helper()
	_, problems, err := s.set.Verify(s.ctx, s.run, s.names, 1000, 100)
	if err != nil {
		t.Errorf("verify: %v", err)
	}
	lost := []string{"k2", "m2", "a3", "h2", "s1", "s2", "q2", "b1", "b2"} // they were in the lanes
	for _, p := range problems {
		expected := strings.Contains(p, " is a string") || strings.Contains(p, " with an empty lane") ||
			slices.ContainsFunc(lost, func(id string) bool {
				return p == "message "+id+" has an envelope but is nowhere"
			})
		if !expected {
			t.Errorf("after %s: %s", name, p)
		}
	}
	if _, err := s.enqueue("", placements(1, "later other", "sooner")); err != nil {
		t.Errorf("enqueue to another key: %v", err)
	}
}

// A processing set that was overwritten costs what it held, not what other claims held that are over as well.
func TestDamageClaim(t *testing.T) {
	t.Parallel()
	s := freshQueue(t, zqtest.Shared(t).Client(), virtualSet())
	damaged := s.names.Claim(cidLast)
	if err := s.rdb.Del(s.ctx, damaged).Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.rdb.Set(s.ctx, damaged, "not ours", 0).Err(); err != nil {
		t.Fatal(err)
	}
	reaped, _, err := s.set.Reap(s.ctx, s.run, s.names, anyUpkeep())
	if err != nil || reaped != 2 {
		t.Errorf("reaped %d, want 2: %v", reaped, err)
	}
	for id, letter := range map[string]string{"y1": "t", "m1": "p", "k1": "r"} {
		if found, err := s.set.Find(s.ctx, s.run, s.names, id); err != nil || found.Letter != letter {
			t.Errorf("%s is %q, want %q: %v", id, found.Letter, letter, err)
		}
	}
}

// An entry of a key that somebody holds, as a lost write or redis-cli may leave it, is dropped and not served.
func TestDamageEntryOfHeldKey(t *testing.T) {
	t.Parallel()
	s := freshQueue(t, zqtest.Shared(t).Client(), virtualSet())
	for _, key := range []string{"a", "h", "k", "s", "nobody"} {
		if err := s.rdb.ZAdd(s.ctx, s.names.Ready, redis.Z{Score: -1, Member: "\x00" + key}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	locks := mustRead(t, s).Locks
	got, err := s.claimCall(script.ClaimCall{
		CID: "new", Entries: 5, Messages: 5, PerKey: 5, Lease: time.Minute, Upkeep: script.Upkeep{MaxLosses: 3, DeadMax: 100},
	})
	if err != nil || got.Status != "empty" {
		t.Errorf("claimed %+v, %v", got, err)
	}
	want(t, "locks", locks, mustRead(t, s).Locks)
	s.clean(t)
}
