package script_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// counts lie around the chunks of variadic calls, and above what Lua can unpack.
func counts() []int { return []int{0, 1, 2, 3, 999, 1000, 1001, 7999, 8000, 20_000} }

// maxBatch is the most that one enqueue call is given.
const maxBatch = 10_000

// chunk is a way in which many messages go through one call: what goes in comes out, in order.
type chunk struct {
	name string
	run  func(t *testing.T, s *store, n int)
}

func chunks() []chunk {
	return []chunk{
		{"Ack", chunkAck}, {"AckWindowed", chunkAckWindowed}, {"OneKey", chunkOneKey}, {"ManyKeys", chunkManyKeys},
		{"GiveUp", chunkGiveUp}, {"Promote", chunkPromote}, {"ReapOneClaim", chunkReapMembers},
		{"ReapManyClaims", chunkReapClaims}, {"KeyDies", chunkKeyDies}, {"Duplicates", chunkDuplicates},
		{"Effects", chunkEffects}, {"Heartbeat", chunkHeartbeat},
	}
}

func TestEdgeChunks(t *testing.T) {
	t.Parallel()
	rdb, set := zqtest.Redis(t).Client(func(o *redis.Options) { o.ReadTimeout = time.Minute }), virtualSet()
	for _, c := range chunks() {
		t.Run(c.name, func(t *testing.T) {
			for _, n := range counts() {
				runChunk(t, newStore(t.Context(), rdb, set, zqtest.Queue(t)), c, n)
			}
		})
	}
}

func runChunk(t *testing.T, s *store, c chunk, n int) {
	t.Helper()
	t.Run(fmt.Sprint(n), func(t *testing.T) {
		s.at(t, epoch)
		c.run(t, s, n)
		s.clean(t)
		if err := s.rdb.FlushDB(s.ctx).Err(); err != nil {
			t.Error(err)
		}
	})
}

// fill enqueues n messages in the largest batches there are.
func (s *store) fill(t *testing.T, n int, key func(i int) string, due script.Due) {
	t.Helper()
	for from := 0; from < n; from += maxBatch {
		list := make([]script.Placement, 0, maxBatch)
		for i := from; i < min(n, from+maxBatch); i++ {
			list = append(list, script.Placement{ID: fmt.Sprint("m", i), Key: key(i), Due: due, Envelope: []byte("\x1a\x01x")})
		}
		got, err := s.enqueue(fmt.Sprint("token", from), list)
		if err != nil || len(got.States) != len(list) {
			t.Fatalf("%d states for %d messages: %v", len(got.States), len(list), err)
		}
	}
}

func noKey(int) string   { return "" }
func sameKey(int) string { return "k" }

// takeAll claims n messages, in the order of their enqueueing.
func (s *store) takeAll(t *testing.T, cid string, n int) []script.Taken {
	t.Helper()
	got := s.take(t, cid, n)
	if len(got.Messages) != n {
		t.Fatalf("claimed %d, want %d", len(got.Messages), n)
	}
	for i, m := range got.Messages {
		if want := fmt.Sprint("m", i); idOf(m.Member) != want || !m.HasEnvelope {
			t.Fatalf("message %d is %q, want %s with its envelope", i, m.Member, want)
		}
	}
	return got.Messages
}

func members(list []script.Taken) []string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = list[i].Member
	}
	return out
}

// empty sees that nothing is left but counters and records.
func (s *store) empty(t *testing.T, n int) {
	t.Helper()
	d, err := s.set.Depth(s.ctx, s.run, s.names)
	d.Now, d.DedupeRecords = 0, 0
	if err != nil || d != (script.Depth{}) {
		t.Errorf("something is left: %+v %v", d, err)
	}
	if acked := mustRead(t, s).Stats["acked"]; acked != int64(n) {
		t.Errorf("%d acked, want %d", acked, n)
	}
}

func chunkAck(t *testing.T, s *store, n int) {
	s.fill(t, n, noKey, script.Due{})
	s.apply(t, &script.SettleCall{CID: "c", Acks: members(s.takeAll(t, "c", n))})
	s.empty(t, n)
}

func chunkAckWindowed(t *testing.T, s *store, n int) {
	s.fill(t, n, noKey, script.Due{})
	call := &script.SettleCall{CID: "c"}
	for _, m := range s.takeAll(t, "c", n) {
		call.Windowed = append(call.Windowed, script.Window{Member: m.Member, Keep: time.Hour})
	}
	s.apply(t, call)
	s.empty(t, n)
	if got := len(mustRead(t, s).Done); got != n {
		t.Errorf("%d records, want %d", got, n)
	}
	s.at(t, epoch+2*hour)
	for range (n + 499) / 500 { // that many a call
		if _, _, err := s.set.Reap(s.ctx, s.run, s.names, anyUpkeep()); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(mustRead(t, s).Done); got != 0 {
		t.Errorf("%d records after their time", got)
	}
}

func chunkOneKey(t *testing.T, s *store, n int) {
	s.fill(t, n, sameKey, script.Due{})
	s.apply(t, &script.SettleCall{CID: "c", Acks: members(s.takeAll(t, "c", n))})
	s.empty(t, n)
}

func chunkManyKeys(t *testing.T, s *store, n int) {
	s.fill(t, n, func(i int) string { return fmt.Sprint("k", i) }, script.Due{})
	s.apply(t, &script.SettleCall{CID: "c", Acks: members(s.takeAll(t, "c", n))})
	s.empty(t, n)
}

func chunkGiveUp(t *testing.T, s *store, n int) {
	s.fill(t, n, noKey, script.Due{})
	s.takeAll(t, "c", n)
	s.apply(t, &script.SettleCall{CID: "c", GiveUp: true})
	s.apply(t, &script.SettleCall{CID: "d", Acks: members(s.takeAll(t, "d", n))})
	s.empty(t, n)
}

func chunkPromote(t *testing.T, s *store, n int) {
	s.fill(t, n, noKey, script.After(time.Second))
	s.at(t, epoch+1_000_000)
	u := anyUpkeep()
	u.Promote = max(1, n)
	if _, got, err := s.set.Reap(s.ctx, s.run, s.names, u); err != nil || got != n {
		t.Fatalf("promoted %d, want %d: %v", got, n, err)
	}
	s.apply(t, &script.SettleCall{CID: "c", Acks: members(s.takeAll(t, "c", n))})
	s.empty(t, n)
}

func chunkReapMembers(t *testing.T, s *store, n int) {
	s.fill(t, n, func(i int) string { return []string{"", "k"}[i%2] }, script.Due{})
	if got := s.take(t, "c", 2*n); len(got.Messages) != n {
		t.Fatalf("claimed %d, want %d", len(got.Messages), n)
	}
	s.at(t, epoch+time.Minute.Microseconds())
	if got, _, err := s.set.Reap(s.ctx, s.run, s.names, anyUpkeep()); err != nil || got != min(n, 1) {
		t.Fatalf("reaped %d: %v", got, err)
	}
	v := mustRead(t, s)
	if got := len(v.Suspect) - min(n/2, 1) + len(v.Lanes["k"]); got != n || len(v.Claims) > 0 {
		t.Errorf("%d messages are back, want %d", got, n)
	}
}

// chunkReapClaims makes n claims of one message each, as n dead workers would leave them.
func chunkReapClaims(t *testing.T, s *store, n int) {
	s.fill(t, n, noKey, script.Due{})
	pipe := s.rdb.Pipeline()
	for i, m := range s.takeAll(t, "c", n) {
		pipe.ZAdd(s.ctx, s.names.Claim(fmt.Sprint("c", i)), redis.Z{Member: m.Member, Score: float64(i)})
		pipe.ZAdd(s.ctx, s.names.Leases, redis.Z{Member: fmt.Sprint("c", i), Score: float64(epoch)})
	}
	pipe.Del(s.ctx, s.names.Claim("c"))
	pipe.ZRem(s.ctx, s.names.Leases, "c")
	if _, err := pipe.Exec(s.ctx); err != nil {
		t.Fatal(err)
	}
	u := anyUpkeep()
	u.Reap = max(1, n)
	if got, _, err := s.set.Reap(s.ctx, s.run, s.names, u); err != nil || got != n {
		t.Fatalf("reaped %d, want %d: %v", got, n, err)
	}
	v := mustRead(t, s)
	if len(v.Suspect) != n || len(v.Reaped) != n || len(v.Leases) != 0 {
		t.Errorf("%d suspects, %d tombstones, %d leases, want %d, %d, 0", len(v.Suspect), len(v.Reaped), len(v.Leases), n, n)
	}
}

// chunkKeyDies: the first message of a key takes n others along.
func chunkKeyDies(t *testing.T, s *store, n int) {
	s.fill(t, n+1, sameKey, script.Due{})
	first := s.take(t, "c", 1).Messages[0].Member
	s.apply(t, &script.SettleCall{CID: "c", Others: []script.Outcome{script.Dead(first, "attempts", "broken", "key", "")}})
	u := anyUpkeep()
	u.Promote = n + 1
	if _, _, err := s.set.Reap(s.ctx, s.run, s.names, u); err != nil {
		t.Fatal(err)
	}
	if v := mustRead(t, s); len(v.Dead) != n+1 || len(v.Stories) != n+1 || len(v.Locks) != 0 {
		t.Errorf("%d dead letters with %d stories, want %d; locks %v", len(v.Dead), len(v.Stories), n+1, v.Locks)
	}
}

// chunkDuplicates enqueues everything twice, in one batch and in a second.
func chunkDuplicates(t *testing.T, s *store, n int) {
	n = min(n, maxBatch/2)
	var list []script.Placement
	for i := range 2 * n {
		list = append(list, script.Placement{ID: fmt.Sprint("m", i%max(n, 1)), Key: "k"})
	}
	for range 2 {
		if _, err := s.enqueue("", list); err != nil {
			t.Fatal(err)
		}
	}
	if v := mustRead(t, s); len(v.Envelopes) != n || v.Stats["duplicates"] != int64(3*n) {
		t.Errorf("%d messages, %d duplicates, want %d, %d", len(v.Envelopes), v.Stats["duplicates"], n, 3*n)
	}
}

// chunkEffects acks one message with n follow-ups, and a hash and a list of so many fields.
func chunkEffects(t *testing.T, s *store, n int) {
	n = min(n, maxBatch)
	s.put(t, placements(1, "a")...)
	var follow []script.Placement
	for i := range n {
		follow = append(follow, script.Placement{ID: fmt.Sprint("m", i)})
	}
	member := s.take(t, "c", 1).Messages[0].Member
	s.apply(t, &script.SettleCall{CID: "c", Others: []script.Outcome{script.AckWith(member, 0, nil, follow)}})
	if v := mustRead(t, s); len(v.Ready) != n || len(v.Envelopes) != n {
		t.Errorf("%d ready, %d envelopes, want %d", len(v.Ready), len(v.Envelopes), n)
	}
}

func chunkHeartbeat(t *testing.T, s *store, n int) {
	s.fill(t, min(n, 1), noKey, script.Due{})
	s.take(t, "c0", 1)
	cids := make([]string, n)
	for i := range cids {
		cids[i] = fmt.Sprint("c", i)
	}
	got, err := s.set.Heartbeat(s.ctx, s.run, s.names, 2*time.Minute, script.Worker{}, cids)
	if err != nil || len(got.Lost) > 0 {
		t.Fatalf("lost %v: %v", got.Lost, err)
	}
	if v := mustRead(t, s); n > 0 && v.Leases["c0"] != float64(epoch+2*time.Minute.Microseconds()) {
		t.Errorf("leases %v", v.Leases)
	}
}
