package script_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// edge is a test of the scripts at the rim of what they take. It runs on a real redis-server and on the
// embedded one.
type edge struct {
	name string
	run  func(t *testing.T, s *store)
}

func edges() []edge {
	return []edge{
		{"EqualScoresKeepEnqueueOrder", edgeEqualScores}, {"ScoresAreExact", edgeScores},
		{"PlainScoresAreExact", edgePlainScores}, {"SequenceGrows", edgeSequence}, {"OnlyWhatIsDue", edgeDue},
		{"DueInOrder", edgeDueOrder}, {"NewerLayout", edgeLayout}, {"WindowEnds", edgeWindow},
		{"TokenIsForgotten", edgeToken}, {"LeaseEnds", edgeLease}, {"TombstonesGo", edgeTombstones},
		{"RecordsGo", edgeRecords}, {"DeadLettersAreTrimmed", edgeTrim}, {"BodyByteForByte", edgeBody},
		{"SuspectIsNotReady", edgeSuspectHead}, {"KeyDiesInParts", edgeDying}, {"EffectsThatClash", edgeEffects},
	}
}

func TestEdges(t *testing.T) {
	t.Parallel()
	rdb, set := zqtest.Shared(t).Client(), virtualSet()
	for _, e := range edges() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t.Context(), rdb, set, zqtest.Queue(t))
			s.at(t, epoch)
			e.run(t, s)
			s.clean(t)
		})
	}
}

func (s *store) at(t *testing.T, micros int64) {
	t.Helper()
	if err := s.setTime(micros); err != nil {
		t.Fatal(err)
	}
}

func (s *store) clean(t *testing.T) {
	t.Helper()
	if _, problems, err := s.set.Verify(s.ctx, s.run, s.names, 100_000, 10); err != nil || len(problems) > 0 {
		t.Errorf("verify: %v %q", err, problems)
	}
}

func (s *store) put(t *testing.T, list ...script.Placement) script.Placed {
	t.Helper()
	got, err := s.enqueue("", list)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// take claims with all the upkeep there is.
func (s *store) take(t *testing.T, cid string, most int) script.Claimed {
	t.Helper()
	got, err := s.claimCall(script.ClaimCall{
		CID: cid, Entries: max(1, most), Messages: most, PerKey: max(1, most), Lease: time.Minute, Upkeep: anyUpkeep(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (s *store) apply(t *testing.T, call *script.SettleCall) {
	t.Helper()
	call.DeadKeep, call.DeadMax = time.Hour, 100
	if err := s.settle(call); err != nil {
		t.Fatal(err)
	}
}

func idsOf(c script.Claimed) []string {
	out := []string{}
	for _, m := range c.Messages {
		out = append(out, idOf(m.Member))
	}
	return out
}

func idOf(member string) string {
	_, id, found := strings.Cut(member, ":")
	if !found {
		return member
	}
	id, _, _ = strings.Cut(id, "\x00")
	return id
}

func want(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// By bare names 10 would come before 2.
func edgeEqualScores(t *testing.T, s *store) {
	order := []string{"1", "2", "9", "10", "20", "100", "3", "30"}
	for _, key := range []string{"", " k"} {
		for _, id := range order {
			s.put(t, placements(7, id+strings.TrimSpace(key)+key)...)
		}
	}
	got := s.take(t, "c", 100)
	plain, keyed := []string{}, []string{}
	for _, id := range idsOf(got) {
		if bare, ok := strings.CutSuffix(id, "k"); ok {
			keyed = append(keyed, bare)
		} else {
			plain = append(plain, id)
		}
	}
	want(t, "without a key", order, plain)
	want(t, "with one key", order, keyed)
}

func edgeScores(t *testing.T, s *store) {
	const most = "9007199254740991"
	list := []script.Placement{
		{ID: "high", Score: most}, {ID: "low", Score: "-" + most}, {ID: "zero", Score: "0"},
		{ID: "high-1", Score: "9007199254740990"}, {ID: "low+1", Score: "-9007199254740990"},
	}
	s.put(t, list...)
	order := []string{"low", "low+1", "zero", "high-1", "high"}
	scores := map[string]string{}
	for _, p := range list {
		scores[p.ID] = p.Score
	}
	for round, outcome := range journeys() {
		got := s.take(t, fmt.Sprint("c", round), 10)
		want(t, "order", order, idsOf(got))
		for i, m := range got.Messages {
			want(t, "score of "+order[i], scores[order[i]], canonical(m.Score))
		}
		outcome(t, s, fmt.Sprint("c", round), got.Messages)
	}
}

// Scores that plain ZADD may give are any float64.
func edgePlainScores(t *testing.T, s *store) {
	scores := map[string]float64{
		"a": -math.MaxFloat64, "b": -1e17, "c": -0.1, "d": 0, "e": math.SmallestNonzeroFloat64, "f": 0.1,
		"g": 1.0 / 3, "h": 7058188800000495, "i": 9007199254740993, "j": 1e17 + 2, "k": math.MaxFloat64,
	}
	order := slices.Sorted(maps.Keys(scores))
	for _, id := range order {
		if err := s.rdb.ZAdd(s.ctx, s.names.Ready, redis.Z{Member: id, Score: scores[id]}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for round, outcome := range journeys() {
		got := s.take(t, fmt.Sprint("c", round), 20)
		want(t, "order", order, idsOf(got))
		for i, m := range got.Messages {
			score, err := strconv.ParseFloat(m.Score, 64)
			if err != nil || score != scores[order[i]] {
				t.Errorf("round %d: score of %s is %s, want %v", round, m.Member, m.Score, scores[m.Member])
			}
		}
		outcome(t, s, fmt.Sprint("c", round), got.Messages)
	}
}

// journeys are the ways by which a message comes back from a claim to where it was.
func journeys() []func(t *testing.T, s *store, cid string, list []script.Taken) {
	giveUp := func(t *testing.T, s *store, cid string, _ []script.Taken) {
		s.apply(t, &script.SettleCall{CID: cid, GiveUp: true})
	}
	later := func(t *testing.T, s *store, cid string, list []script.Taken) {
		call := &script.SettleCall{CID: cid}
		for _, m := range list {
			call.Others = append(call.Others, script.Retry(m.Member, time.Second, true, false, "failed", ""))
		}
		s.apply(t, call)
		s.at(t, epoch+1_000_000)
	}
	replayed := func(t *testing.T, s *store, cid string, list []script.Taken) {
		call := &script.SettleCall{CID: cid}
		for _, m := range list {
			call.Others = append(call.Others, script.Dead(m.Member, "attempts", "broken", "continue", ""))
		}
		s.apply(t, call)
		for _, m := range list {
			if got, err := s.set.Replay(s.ctx, s.run, s.names, "", m.Member, false); err != nil || !got.Done {
				t.Fatalf("replay: %+v %v", got, err)
			}
		}
	}
	return []func(*testing.T, *store, string, []script.Taken){giveUp, later, replayed, giveUp}
}

// Sequences and fences grow, also when the server's clock goes back, as after a failover.
func edgeSequence(t *testing.T, s *store) {
	last := int64(0)
	for i, now := range []int64{epoch, epoch, epoch + 1, epoch - 3_600_000_000, epoch - 1, epoch + 5_000_000, epoch + 5_000_000} {
		s.at(t, now)
		for n := range 3 {
			list := placements(1, fmt.Sprintf("%d.%d a", i, n), fmt.Sprintf("%d.%d.x", i, n), fmt.Sprintf("%d.%d a", i, n))
			got := s.put(t, list...)
			if got.First <= last || got.States != "aap" {
				t.Errorf("at %d: first is %d with %s, after %d", now, got.First, got.States, last)
			}
			last = got.First + 1
			claimed := s.take(t, fmt.Sprintf("c%d.%d", i, n), 1)
			if claimed.Fence <= last {
				t.Errorf("at %d: fence %d after %d", now, claimed.Fence, last)
			}
			last = claimed.Fence
		}
	}
}

// 5 due and 95 that are not: promoting 100 takes 5.
func edgeDue(t *testing.T, s *store) {
	var list []script.Placement
	for i := range 100 {
		due := time.Duration(i) * time.Second
		list = append(list, script.Placement{ID: fmt.Sprint(i), Key: []string{"", "k", "l"}[i%3], Due: script.After(due + time.Microsecond)})
	}
	s.put(t, list...)
	s.at(t, epoch+4_000_001)
	_, promoted, err := s.set.Reap(s.ctx, s.run, s.names, anyUpkeep())
	if err != nil || promoted != 5 {
		t.Errorf("promoted %d, want 5: %v", promoted, err)
	}
	want(t, "claimed", []string{"0", "3", "1", "4", "2"}, idsOf(s.take(t, "c", 100)))
}

func edgeDueOrder(t *testing.T, s *store) {
	var list []script.Placement
	for i := range 10 {
		list = append(list, script.Placement{ID: fmt.Sprint(i), Due: script.After(time.Duration(10-i) * time.Second)})
	}
	s.put(t, list...)
	s.at(t, epoch+3_600_000_000)
	u := anyUpkeep()
	u.Promote = 3
	if _, promoted, err := s.set.Reap(s.ctx, s.run, s.names, u); err != nil || promoted != 3 {
		t.Errorf("promoted %d, want 3: %v", promoted, err)
	}
	v := mustRead(t, s)
	for _, id := range []string{"9", "8", "7"} {
		if _, ok := v.Ready[s.member(id)]; !ok {
			t.Errorf("%s was due first, but is not ready", id)
		}
	}
}
