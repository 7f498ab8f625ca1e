package script_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// A newer layout stops old code before it writes.
func edgeLayout(t *testing.T, s *store) {
	s.put(t, placements(1, "a", "b k")...)
	if err := s.rdb.HSet(s.ctx, s.names.Meta, "layout", "2").Err(); err != nil {
		t.Fatal(err)
	}
	before := mustRead(t, s)
	_, err := s.enqueue("token", placements(1, "c"))
	if err == nil || !strings.Contains(err.Error(), "ZQLAYOUT the store has layout 2") {
		t.Errorf("enqueue: %v", err)
	}
	err = s.claim("c", time.Minute, 1)
	if err == nil || !strings.Contains(err.Error(), "ZQLAYOUT the store has layout 2") {
		t.Errorf("claim: %v", err)
	}
	want(t, "the store", before, mustRead(t, s))
}

// The dedupe window holds until its last microsecond, and what is over is forgotten.
func edgeWindow(t *testing.T, s *store) {
	s.put(t, placements(1, "a", "b")...)
	got := s.take(t, "c", 2)
	s.apply(t, &script.SettleCall{CID: "c", Windowed: []script.Window{
		{Member: got.Messages[0].Member, Keep: time.Second}, {Member: got.Messages[1].Member, Keep: 2 * time.Second},
	}})
	s.at(t, epoch+999_999)
	want(t, "in the window", "oo", s.put(t, placements(1, "a", "b")...).States)
	s.at(t, epoch+1_000_000)
	want(t, "after it", "ao", s.put(t, placements(1, "a", "b")...).States)
	if _, _, err := s.set.Reap(s.ctx, s.run, s.names, anyUpkeep()); err != nil {
		t.Fatal(err)
	}
	want(t, "what is kept", zset{"b": float64(epoch + 2_000_000)}, mustRead(t, s).Done)
}

// A token answers for a minute, whatever became of the messages.
func edgeToken(t *testing.T, s *store) {
	first, err := s.enqueue("token", placements(1, "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	got := s.take(t, "c", 1)
	s.apply(t, &script.SettleCall{CID: "c", Acks: []string{got.Messages[0].Member}})
	s.at(t, epoch+59_999_999)
	again, err := s.enqueue("token", placements(1, "a", "b"))
	if err != nil || again != first {
		t.Errorf("again: %+v %v, first %+v", again, err, first)
	}
	s.at(t, epoch+60_000_000)
	if _, _, err := s.set.Reap(s.ctx, s.run, s.names, anyUpkeep()); err != nil {
		t.Fatal(err)
	}
	late, err := s.enqueue("token", placements(1, "a", "b"))
	if err != nil || late.States != "ap" {
		t.Errorf("after a minute: %+v %v", late, err)
	}
}

// A lease is over at its deadline, not after it.
func edgeLease(t *testing.T, s *store) {
	s.put(t, placements(1, "a", "b")...)
	got := s.take(t, "c", 2)
	beat := func() []string {
		got, err := s.set.Heartbeat(s.ctx, s.run, s.names, time.Minute, script.Worker{}, []string{"c", "unknown"})
		if err != nil {
			t.Fatal(err)
		}
		return got.Lost
	}
	settle := func(i int) script.Settled {
		done, err := s.set.Settle(s.ctx, s.run, s.names, &script.SettleCall{CID: "c", Acks: []string{got.Messages[i].Member}})
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	end := epoch + time.Minute.Microseconds()
	s.at(t, end-1)
	want(t, "just before: lost", []string{}, beat())
	want(t, "just before: settled", script.Settled{Applied: 1}, settle(0))
	s.at(t, end-1+time.Minute.Microseconds())
	want(t, "at the end: lost", []string{"c"}, beat())
	want(t, "at the end: settled", script.Settled{Rest: []script.Refusal{{Index: 0, Code: script.CodeLost}}}, settle(1))
	if n, _, err := s.set.Reap(s.ctx, s.run, s.names, anyUpkeep()); err != nil || n != 1 {
		t.Errorf("reaped %d: %v", n, err)
	}
	want(t, "reaped: lost", []string{"c"}, beat())
	want(t, "reaped: settled", script.Settled{Rest: []script.Refusal{{Index: 0, Code: script.CodeLost}}}, settle(1))
}

func edgeTombstones(t *testing.T, s *store) {
	lease := func(n int) {
		for i := range n {
			s.put(t, placements(1, fmt.Sprint("m", i))...)
			s.take(t, fmt.Sprintf("c%d", i), 1)
		}
	}
	lease(20)
	s.at(t, epoch+time.Minute.Microseconds())
	if n, _, err := s.set.Reap(s.ctx, s.run, s.names, anyUpkeep()); err != nil || n != 20 {
		t.Fatalf("reaped %d: %v", n, err)
	}
	want(t, "tombstones", 20, len(mustRead(t, s).Reaped))
	s.at(t, epoch+25*3_600_000_000)
	s.put(t, placements(1, "one")...)
	s.take(t, "last", 1)
	s.at(t, epoch+26*3_600_000_000)
	if n, _, err := s.set.Reap(s.ctx, s.run, s.names, anyUpkeep()); err != nil || n != 1 {
		t.Fatalf("reaped %d: %v", n, err)
	}
	want(t, "after a day", zset{"last": float64(epoch + 26*3_600_000_000)}, mustRead(t, s).Reaped)
}

// Records of calls and of acked ids do not grow without end, though nothing but their own kind of call runs.
func edgeRecords(t *testing.T, s *store) {
	for i := range 60 {
		s.at(t, epoch+int64(i)*10_000_000)
		id := fmt.Sprint("m", i)
		if _, err := s.enqueue(fmt.Sprint("token", i), placements(1, id)); err != nil {
			t.Fatal(err)
		}
		got := s.take(t, fmt.Sprint("c", i), 1)
		s.apply(t, &script.SettleCall{CID: fmt.Sprint("c", i), Windowed: []script.Window{
			{Member: got.Messages[0].Member, Keep: time.Minute},
		}})
	}
	v := mustRead(t, s)
	want(t, "ops, done", [2]int{6, 6}, [2]int{len(v.Ops), len(v.Done)})
}

func edgeTrim(t *testing.T, s *store) {
	call := &script.SettleCall{CID: "c", DeadKeep: time.Hour, DeadMax: 5}
	for i := range 12 {
		s.put(t, placements(1, fmt.Sprint("m", i))...)
		call.Others = append(call.Others, script.Dead(s.member(fmt.Sprint("m", i)), "attempts", "broken", "continue", ""))
	}
	s.take(t, "c", 12)
	if err := s.settle(call); err != nil {
		t.Fatal(err)
	}
	v := mustRead(t, s)
	want(t, "dead, stories, envelopes", [3]int{5, 5, 5}, [3]int{len(v.Dead), len(v.Stories), len(v.Envelopes)})
	s.at(t, epoch+time.Hour.Microseconds())
	s.take(t, "d", 1)
	want(t, "at the end of their time", 5, len(mustRead(t, s).Dead))
	s.at(t, epoch+time.Hour.Microseconds()+1)
	s.take(t, "e", 1)
	want(t, "after it", 0, len(mustRead(t, s).Dead))
}

// What a client stores comes back byte for byte, through every kind of return.
func edgeBody(t *testing.T, s *store) {
	var all strings.Builder
	for i := range 256 {
		all.WriteByte(byte(i))
	}
	body := all.String() + `{"id":1152921504606846976,"list":[],"x":"\u2028"}` + strings.Repeat("\x00", 3)
	key := strings.Repeat("\xc3", 256)
	s.put(t, script.Placement{ID: "a", Envelope: []byte(body)}, script.Placement{ID: "b", Key: key, Envelope: []byte(body)})
	for round, outcome := range journeys() {
		got := s.take(t, fmt.Sprint("c", round), 10)
		if len(got.Messages) != 2 {
			t.Fatalf("round %d: %d messages", round, len(got.Messages))
		}
		for i, m := range got.Messages {
			head := envelopeHead(epoch+int64(i), []string{"", key}[i])
			if m.Envelope != head+body {
				t.Errorf("round %d: envelope %d is %q", round, i, m.Envelope)
			}
		}
		outcome(t, s, fmt.Sprint("c", round), got.Messages)
	}
}

// die claims one message and lets its worker die.
func (s *store) die(t *testing.T, cid string, now int64) {
	t.Helper()
	s.at(t, now)
	got, err := s.claimCall(script.ClaimCall{
		CID: cid, Entries: 1, Messages: 1, PerKey: 1, Lease: time.Second, Suspects: true, Upkeep: anyUpkeep(),
	})
	if err != nil || len(got.Messages) != 1 {
		t.Fatalf("claim: %+v %v", got, err)
	}
}

// A message that has killed a worker comes back, delayed, to the head of a lane that is ready meanwhile: its
// key is under suspicion then, and no longer ready. Without a key it is under suspicion itself.
func edgeSuspectHead(t *testing.T, s *store) {
	for _, key := range []string{"k", ""} {
		id := "killer" + key
		s.put(t, script.Placement{ID: id, Key: key, Score: "1"})
		s.die(t, "first"+key, epoch)
		s.die(t, "second"+key, epoch+1_000_000) // alone now, so it is blamed
		s.die(t, "third"+key, epoch+2_000_000)
		s.apply(t, &script.SettleCall{CID: "third" + key, Others: []script.Outcome{
			script.Retry(s.member(id), time.Second, true, false, "failed", ""),
		}})
		s.put(t, script.Placement{ID: "next" + key, Key: key, Score: "2"})
		s.at(t, epoch+3_000_000)
		if _, n, err := s.set.Reap(s.ctx, s.run, s.names, anyUpkeep()); err != nil || n != 1 {
			t.Errorf("promoted %d: %v", n, err)
		}
		v := mustRead(t, s)
		if key == "" {
			want(t, "ready", zset{s.member("next"): 2}, v.Ready)
			want(t, "suspect", zset{s.member(id): 1}, v.Suspect)
			return
		}
		want(t, "ready", zset{}, v.Ready)
		want(t, "suspect", zset{"\x00k": 1}, v.Suspect)
		s.at(t, epoch)
		for _, id := range []string{"killerk", "nextk"} { // out of the way
			got, err := s.claimCall(script.ClaimCall{
				CID: id, Entries: 1, Messages: 1, PerKey: 1, Lease: time.Hour, Suspects: true, Upkeep: anyUpkeep(),
			})
			if err != nil || len(got.Messages) != 1 {
				t.Fatalf("claim: %+v %v", got, err)
			}
			s.apply(t, &script.SettleCall{CID: id, Acks: []string{got.Messages[0].Member}})
		}
	}
}

// A key that dies takes its lane along, no more of it a call than is allowed to be carried over.
func edgeDying(t *testing.T, s *store) {
	s.put(t, placements(1, "m0 k", "m1 k", "m2 k", "m3 k", "m4 k")...)
	s.die(t, "c", epoch)
	s.apply(t, &script.SettleCall{CID: "c", Others: []script.Outcome{script.Dead(s.member("m0"), "attempts", "broken", "key", "")}})
	u := anyUpkeep()
	u.Promote = 2
	for i, dead := range []int{3, 5, 5} {
		lock := "dying|0|0" // until a call finds less than it may take
		if i == 2 {
			lock = ""
		}
		if _, n, err := s.set.Reap(s.ctx, s.run, s.names, u); err != nil || n != 1 {
			t.Errorf("promoted %d: %v", n, err)
		}
		v := mustRead(t, s)
		want(t, fmt.Sprint("dead after call ", i), dead, len(v.Dead))
		want(t, "lock", lock, v.Locks["k"])
	}
	s.put(t, placements(1, "later k")...)
	want(t, "a message that comes later", []string{"later"}, idsOf(s.take(t, "d", 1)))
}

// An effect that would meet what an earlier one of its list leaves is refused before anything is written.
func edgeEffects(t *testing.T, s *store) {
	s.put(t, placements(1, "a")...)
	member := s.take(t, "c", 1).Messages[0].Member
	effect := func(name, verb string, args ...any) script.Effect {
		return script.Effect{Name: name, Verb: verb, Args: args}
	}
	lists := map[string][]script.Effect{
		"another type":      {effect("x", "set", "v"), effect("x", "hset", "f", "v")},
		"a word as number":  {effect("x", "set", "word"), effect("x", "incrby", 1)},
		"a field as number": {effect("x", "hset", "f", "1", "g", "word"), effect("x", "hincrby", "g", 1)},
		"out of range":      {effect("x", "set", "9007199254740991"), effect("x", "incrby", 1)},
	}
	before := mustRead(t, s)
	for name, list := range lists {
		got, err := s.set.Settle(s.ctx, s.run, s.names, &script.SettleCall{
			CID: "c", Others: []script.Outcome{script.AckWith(member, 0, list, placements(1, "follow"))}, DeadMax: 10,
		})
		want(t, "ack: "+name, script.Settled{Rest: []script.Refusal{{Index: 0, Code: 3}}}, got)
		code, err2 := s.set.Checkpoint(s.ctx, s.run, s.names, "", "c", member, list)
		if code != 3 || err != nil || err2 != nil {
			t.Errorf("%s: checkpoint %d, %v, %v", name, code, err, err2)
		}
		want(t, name, before, mustRead(t, s))
	}
	fine := []script.Effect{
		effect("n", "set", "41"), effect("n", "incrby", 1), effect("h", "hset", "f", "word"), effect("h", "hincrby", "g", 2),
	}
	s.apply(t, &script.SettleCall{CID: "c", Others: []script.Outcome{script.AckWith(member, 0, fine, nil)}})
	want(t, "effects", map[string]any{"n": "42", "h": map[string]string{"f": "word", "g": "2"}}, mustRead(t, s).Effects)
}
