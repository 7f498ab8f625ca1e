package script_test

import (
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// Without the tests' clock time is the server's, in microseconds, and the scripts are known by their own names.
func TestServerTime(t *testing.T) {
	t.Parallel()
	rdb, set := zqtest.Shared(t).Client(), script.New()
	s := newStore(t.Context(), rdb, set, zqtest.Queue(t))
	if err := set.Load(s.ctx, rdb); err != nil {
		t.Fatal(err)
	}
	for _, one := range set.All() {
		if known := rdb.ScriptExists(s.ctx, one.SHA()).Val(); len(known) != 1 || !known[0] {
			t.Errorf("%s is not loaded as %s", one.Name(), one.SHA())
		}
	}
	before := rdb.Time(s.ctx).Val()
	placed := s.put(t, script.Placement{ID: "now"}, script.Placement{ID: "past", Due: script.At(before.Add(-time.Hour))},
		script.Placement{ID: "soon", Due: script.After(time.Hour)}, script.Placement{ID: "later", Due: script.At(before.Add(2 * time.Hour))})
	after := rdb.Time(s.ctx).Val()
	if at := time.UnixMicro(placed.First); placed.States != "aaaa" || at.Before(before) || at.After(after) {
		t.Errorf("placed %+v between %v and %v", placed, before, after)
	}
	v := mustRead(t, s)
	soon := time.UnixMicro(int64(v.Delayed[s.member("soon")]))
	if len(v.Delayed) != 2 || soon.Before(before.Add(time.Hour)) || soon.After(after.Add(time.Hour)) {
		t.Errorf("delayed: %v", v.Delayed)
	}
	want(t, "later", float64(before.Add(2*time.Hour).UnixMicro()), v.Delayed[s.member("later")])
	got := s.take(t, "c", 4)
	want(t, "claimed", []string{"now", "past"}, idsOf(got))
	want(t, "next due", int64(0), got.NextDue)
	if over := time.UnixMicro(int64(mustRead(t, s).Leases["c"])); over.Sub(time.UnixMicro(got.Now)) != time.Minute {
		t.Errorf("the lease of a minute, claimed at %v, ends at %v", time.UnixMicro(got.Now), over)
	}
}
