package script_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// With no memory left nothing is added, and what is there is worked off: every other script does all that it
// does with memory.
func TestDamageOutOfMemory(t *testing.T) {
	t.Parallel()
	rdb, set := zqtest.Redis(t).Client(), virtualSet()
	refused := []string{"enqueue batch", "pause on", "replay original", "replay now, keyed"}

	type twin struct {
		c       scriptCase
		s       *store
		member  func(string) string
		before  map[string]string
		want    view
		wantErr error
	}
	var twins []twin
	for _, c := range scriptCases() {
		plenty := freshQueue(t, rdb, set)
		err := c.run(plenty, c.lookUp(plenty))
		one := twin{c: c, s: freshQueue(t, rdb, set), want: mustRead(t, plenty), wantErr: err}
		one.member, one.before = c.lookUp(one.s), one.s.dump(t)
		twins = append(twins, one)
	}
	if err := rdb.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	for _, one := range twins {
		err := one.c.run(one.s, one.member)
		if slices.Contains(refused, one.c.name) {
			if !redis.IsOOMError(err) {
				t.Errorf("%s: want OOM, got %v", one.c.name, err)
			}
			noChange(t, one.before, one.s.dump(t))
			continue
		}
		if err != nil || one.wantErr != nil {
			t.Errorf("%s: %v, with memory %v", one.c.name, err, one.wantErr)
		}
		if diff := cmp.Diff(one.want, mustRead(t, one.s)); diff != "" {
			t.Errorf("%s (-with memory +without):\n%s", one.c.name, diff)
		}
	}
	s := twins[0].s
	got, err := s.enqueue("known", placements(1, "d1", "dc", "d2"))
	if err != nil || got.States != "aaa" {
		t.Errorf("a call that was made before: %+v, %v", got, err)
	}
}

func mustRead(t *testing.T, s *store) view {
	t.Helper()
	v, err := s.read()
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return v
}
