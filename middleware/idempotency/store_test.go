package idempotency_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

func owner(message string, fence int64) idempotency.Owner {
	return idempotency.Owner{Message: message, Fence: fence}
}

func named(key string) idempotency.Name { return idempotency.Name{Scope: "orders", Key: key} }

// begin asks for one key, for a minute.
func begin(t *testing.T, s idempotency.Store, key string, o idempotency.Owner) idempotency.Answer {
	t.Helper()
	return s.Begin(t.Context(), []idempotency.Claim{{Name: named(key), Owner: o, For: time.Minute}})[0]
}

// finish ends one run, and keeps the record for an hour.
func finish(t *testing.T, s idempotency.Store, key string, o idempotency.Owner, e idempotency.Ending) bool {
	t.Helper()
	e.Name, e.Owner, e.Keep = named(key), o, time.Hour
	a := s.Finish(t.Context(), []idempotency.Ending{e})[0]
	if a.Err != nil {
		t.Fatalf("finish %q: %v", key, a.Err)
	}
	return a.Granted
}

// The table of what is granted: a step is "<what> <message> <fence> <yes|no>", in their order on one key.
func TestStates(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"one at a time":                       "begin a 1 yes, begin b 2 no, done a 1 yes, begin b 2 no",
		"done for the same message too":       "begin a 1 yes, done a 1 yes, begin a 2 no",
		"cleared is free":                     "begin a 1 yes, clear a 1 yes, begin b 2 yes",
		"failed is free":                      "begin a 1 yes, fail a 1 yes, begin b 2 yes, done b 2 yes",
		"failed is free for its message":      "begin a 1 yes, fail a 1 yes, begin a 2 yes",
		"held for its message":                "begin a 1 yes, hold a 1 yes, begin b 2 no, begin a 3 yes, done a 3 yes, begin b 2 no",
		"a dead one lets go":                  "begin a 1 yes, hold a 1 yes, begin a 2 yes, fail a 2 yes, begin b 3 yes",
		"redelivered after a crash":           "begin a 1 yes, begin a 2 yes, done a 2 yes",
		"a stale run gets nothing":            "begin a 1 yes, begin a 2 yes, begin a 1 no, done a 1 no, clear a 1 no, fail a 1 no, done a 2 yes",
		"a stale run after failure":           "begin a 1 yes, begin a 2 yes, fail a 2 yes, begin a 1 no, done a 1 no",
		"a stranger ends nothing":             "begin a 1 yes, done b 9 no, clear b 9 no, fail b 9 no, begin b 9 no, done a 1 yes",
		"begin asked again":                   "begin a 1 yes, begin a 1 yes, begin b 2 no",
		"done asked again":                    "begin a 1 yes, done a 1 yes, done a 1 yes, begin b 2 no",
		"clear asked again":                   "begin a 1 yes, clear a 1 yes, clear a 1 yes, begin b 2 yes, clear a 1 no",
		"fail asked again":                    "begin a 1 yes, fail a 1 yes, fail a 1 yes, begin b 2 yes, fail a 1 no",
		"done stays done":                     "begin a 1 yes, done a 1 yes, clear a 1 no, fail a 1 no, hold a 1 no, begin b 2 no",
		"an expired mark's run is done":       "done a 1 yes, begin b 2 no",
		"an expired mark's run fails":         "fail a 1 yes, begin b 2 yes",
		"a fence as large as may be":          "begin a 9007199254740991 yes, begin a 9007199254740990 no, done a 9007199254740991 yes",
		"fences are numbers, not text":        "begin a 9 yes, begin a 10 yes, done a 9 no, done a 10 yes",
		"a replayed dead letter that is done": "begin a 1 yes, fail a 1 yes, begin b 2 yes, done b 2 yes, begin a 3 no",
	}
	endings := map[string]idempotency.Ending{
		"done": {State: idempotency.StateDone}, "fail": {State: idempotency.StateFailed, Error: "broken"},
		"hold": {State: idempotency.StateFailed, Held: true}, "clear": {},
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t, zqtest.Shared(t).Client(), zqtest.Queue(t))
			for step := range strings.SplitSeq(steps, ", ") {
				w := strings.Fields(step)
				o := owner(w[1], number(t, w[2]))
				var got bool
				if ending, ends := endings[w[0]]; ends {
					got = finish(t, s, "key", o, ending)
				} else {
					got = begin(t, s, "key", o).Granted
				}
				if got != (w[3] == "yes") {
					t.Fatalf("%s: got %t", step, got)
				}
			}
		})
	}
}

// Who is refused learns by whom, and a duplicate gets the result.
func TestAnswersHaveTheRecord(t *testing.T) {
	t.Parallel()
	rdb := zqtest.Shared(t).Client()
	s := newStore(t, rdb, zqtest.Queue(t))
	a, b := owner("orders/a\x00\n", 1), owner("orders/b", 2)
	before := rdb.Time(t.Context()).Val().Truncate(time.Microsecond)
	begin(t, s, "key", a)
	busy := begin(t, s, "key", b).Record
	finish(t, s, "key", a, idempotency.Ending{State: idempotency.StateDone, Result: []byte("paid\x00\xff\n")})
	done := begin(t, s, "key", b).Record
	after := rdb.Time(t.Context()).Val()
	looked, err := s.Look(t.Context(), named("key"))
	if err != nil {
		t.Fatal(err)
	}
	times := cmpopts.IgnoreFields(idempotency.Record{}, "Since", "Age", "Expires")
	want := []idempotency.Record{
		{State: idempotency.StateRunning, Owner: a},
		{State: idempotency.StateDone, Owner: a, Result: []byte("paid\x00\xff\n")},
		{State: idempotency.StateDone, Owner: a, Result: []byte("paid\x00\xff\n")},
	}
	if diff := cmp.Diff(want, []idempotency.Record{busy, done, looked}, times); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	for i, keep := range []time.Duration{time.Minute, time.Hour, time.Hour} {
		r := []idempotency.Record{busy, done, looked}[i]
		if r.Since.Before(before) || r.Since.After(after) || r.Age < 0 || r.Age > after.Sub(before) {
			t.Errorf("record %d began at %v, %v ago, want between %v and %v", i, r.Since, r.Age, before, after)
		}
		if r.Expires > keep || r.Expires < keep-after.Sub(before)-time.Second {
			t.Errorf("record %d expires in %v, want %v", i, r.Expires, keep)
		}
	}
	if err := s.Forget(t.Context(), named("key")); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Look(t.Context(), named("key")); err != nil || r.State != idempotency.StateNone {
		t.Errorf("forgotten: %+v, %v", r, err)
	}
}

// Entries of one call see each other, in their order.
func TestOneCallKeepsItsOrder(t *testing.T) {
	t.Parallel()
	s := newStore(t, zqtest.Shared(t).Client(), zqtest.Queue(t))
	claim := func(key, message string) idempotency.Claim {
		return idempotency.Claim{Name: named(key), Owner: owner(message, 1), For: time.Minute}
	}
	var got []bool
	for _, a := range s.Begin(t.Context(), []idempotency.Claim{
		claim("x", "a"), claim("x", "b"), claim("y", "b"), {Name: named("")}, claim("x", "a"), claim("y", "c"),
	}) {
		got = append(got, a.Granted)
	}
	if diff := cmp.Diff([]bool{true, false, true, false, true, false}, got); diff != "" {
		t.Errorf("granted (-want +got):\n%s", diff)
	}
	end := func(key, message string, state idempotency.State) idempotency.Ending {
		return idempotency.Ending{Name: named(key), Owner: owner(message, 1), State: state, Keep: time.Minute}
	}
	got = nil
	for _, a := range s.Finish(t.Context(), []idempotency.Ending{
		end("x", "a", idempotency.StateDone), end("x", "a", idempotency.StateNone), end("y", "b", idempotency.StateNone),
		end("y", "c", idempotency.StateDone), end("y", "b", idempotency.StateDone),
	}) {
		got = append(got, a.Granted)
	}
	if diff := cmp.Diff([]bool{true, false, true, true, false}, got); diff != "" {
		t.Errorf("finished (-want +got):\n%s", diff)
	}
}

// Any bytes make a key, and no two of them the same one; nothing of a key moves it to another slot.
func TestHostileKeys(t *testing.T) {
	t.Parallel()
	keys := []string{
		"\x00", "a\x00b", "a", "{", "}", "{}", "{x}", "}x{", "a}b", ":", "a:b", " ", "\n", "1 d 1 1 1\n", "\xff\xfe", "é",
		strings.Repeat("k", 512), strings.Repeat("k", 511), "*", "[a-z]", "zq:{idem/x/0}:y",
	}
	rdb := oneNodeCluster(t)
	s := newStore(t, rdb, "shop")
	claims := make([]idempotency.Claim, len(keys))
	for i, k := range keys {
		claims[i] = idempotency.Claim{Name: named(k), Owner: owner(k, int64(i)), For: time.Minute}
	}
	for round, granted := range []bool{true, false} {
		for i, a := range s.Begin(t.Context(), claims) {
			if a.Err != nil || a.Granted != granted {
				t.Errorf("round %d, key %q: granted %t, %v", round, keys[i], a.Granted, a.Err)
			}
			claims[i].Owner.Message = "another"
		}
	}
	for i, k := range keys {
		r, err := s.Look(t.Context(), named(k))
		if err != nil || r.Owner != owner(k, int64(i)) {
			t.Errorf("key %q has the record of %+v, %v", k, r.Owner, err)
		}
		if !finish(t, s, k, owner(k, int64(i)), idempotency.Ending{State: idempotency.StateDone}) {
			t.Errorf("key %q cannot be finished", k)
		}
	}
	for _, k := range []string{"", strings.Repeat("k", 513)} {
		if a := begin(t, s, k, owner("m", 1)); !errors.Is(a.Err, zq.ErrInvalid) || a.Granted {
			t.Errorf("a key of %d bytes: %+v", len(k), a)
		}
	}
}

// oneNodeCluster has every slot on one node, so that a script that mixes slots is refused.
func oneNodeCluster(t *testing.T) *redis.ClusterClient {
	t.Helper()
	server := zqtest.Redis(t, zqtest.WithConfig("cluster-enabled", "yes"))
	if err := server.Client().ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr()}})
	t.Cleanup(func() { rdb.Close() })
	zqtest.Eventually(t, limit, func() bool {
		return rdb.Set(t.Context(), "ready", 1, time.Minute).Err() == nil
	}, "a cluster of one node")
	return rdb
}

// Keys spread over as many slots as there are shards.
func TestShards(t *testing.T) {
	t.Parallel()
	rdb := zqtest.Redis(t).Client()
	for _, shards := range []int{1, 16, 1024} {
		s := newStore(t, rdb, "shop", idempotency.Shards(shards))
		claims := make([]idempotency.Claim, 500)
		for i := range claims {
			claims[i] = idempotency.Claim{Name: named(order(i)), Owner: owner("m", 1), For: time.Minute}
		}
		for i, a := range s.Begin(t.Context(), claims) {
			if a.Err != nil || !a.Granted {
				t.Fatalf("%d shards, claim %d: %+v", shards, i, a)
			}
		}
		tags := map[string]bool{}
		for _, key := range rdb.Keys(t.Context(), "zq:{idem/shop/*").Val() {
			tag, _, _ := strings.Cut(key, "}")
			tags[tag] = true
		}
		if len(tags) < min(shards, 300) || len(tags) > shards {
			t.Errorf("%d shards: 500 keys have %d tags", shards, len(tags))
		}
		if err := rdb.FlushDB(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
}
