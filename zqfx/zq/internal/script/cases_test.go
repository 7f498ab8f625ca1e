package script_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// furnished are the names of what furnish makes.
const (
	cidLive = "live" // holds l1, a1 and a2; its lease runs on
	cidOver = "over" // holds y1 and m1; its lease is over, and nobody has reaped it
	cidGone = "gone" // was reaped
	cidLast = "last" // holds k1 alone; its lease is over
)

// opTime is when the cases run: what was delayed for a second is due.
const opTime = epoch + 10_000_000

// furnish makes a queue in which every script finds something to do: messages in every state, keys in every
// state, dead letters, records, tombstones. It uses the store's own client.
func furnish(t *testing.T, s *store) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("furnish: %v", err)
		}
	}
	put := func(score int, list ...string) {
		t.Helper()
		_, err := s.enqueue("", placements(score, list...))
		must(err)
	}
	must(s.setTime(epoch))
	put(1, "x1", "k1 k", "k2 k")
	must(s.claim(cidGone, time.Second, 9))
	must(s.setTime(epoch + 1_000_000))
	_, _, err := s.set.Reap(s.ctx, s.run, s.names, anyUpkeep())
	must(err)

	_, err = s.claimCall(script.ClaimCall{
		CID: cidLast, Lease: time.Second, Suspects: true, Upkeep: script.Upkeep{MaxLosses: 3, DeadMax: 100},
	})
	must(err)
	put(2, "y1", "m1 m", "m2 m")
	must(s.claim(cidOver, time.Second, 1))
	put(3, "l1", "a1 a", "a2 a", "a3 a")
	must(s.claim(cidLive, time.Hour, 2))

	put(4, "w1", "z1", "r1", "h1 h", "h2 h", "s1 s", "s2 s", "q1 q", "q2 q")
	must(s.claim("short", time.Hour, 1))
	must(s.settle(&script.SettleCall{
		CID: "short", DeadKeep: time.Hour, DeadMax: 100,
		Windowed: []script.Window{{Member: s.member("w1"), Keep: time.Hour}},
		Others: []script.Outcome{
			script.Dead(s.member("z1"), "attempts", "broken", "continue", ""),
			script.Retry(s.member("r1"), time.Second, true, false, "failed", ""),
			script.Dead(s.member("h1"), "attempts", "broken", "halt", ""),
			script.Retry(s.member("s1"), time.Second, true, true, "failed", ""),
			script.Dead(s.member("q1"), "attempts", "broken", "key", ""),
		},
	}))
	put(5, "p1", "p2", "b1 b", "b2 b")
	_, err = s.enqueue("known", []script.Placement{
		{ID: "d1", Score: "7", Due: script.After(time.Second)}, {ID: "dc", Key: "c", Due: script.After(time.Second)},
		{ID: "d2", Due: script.After(time.Hour)},
	})
	must(err)
	must(s.rdb.ZAdd(s.ctx, s.names.Ready, redis.Z{Score: 0.5, Member: "plain"}).Err())
	must(s.rdb.Set(s.ctx, s.names.Effect("text"), "word", 0).Err())
	must(s.rdb.HSet(s.ctx, s.names.Effect("hash"), "f", "1").Err())
	must(s.setTime(opTime))
}

// placements reads "id" and "id key".
func placements(score int, list ...string) []script.Placement {
	out := make([]script.Placement, len(list))
	for i, one := range list {
		id, key, _ := strings.Cut(one, " ")
		out[i] = script.Placement{ID: id, Key: key, Score: fmt.Sprint(score), Envelope: []byte("\x1a\x04" + "body")}
	}
	return out
}

func anyUpkeep() script.Upkeep {
	return script.Upkeep{Promote: 100, Reap: 100, MaxLosses: 3, OnDeath: "continue", DeadKeep: time.Hour, DeadMax: 100}
}

func (s *store) enqueue(token string, list []script.Placement) (script.Placed, error) {
	return s.set.Enqueue(s.ctx, s.run, s.names, 0, token, list)
}

func (s *store) claimCall(call script.ClaimCall) (script.Claimed, error) {
	return s.set.Claim(s.ctx, s.run, s.names, call)
}

// claim takes whatever is ready, without any upkeep.
func (s *store) claim(cid string, lease time.Duration, perKey int) error {
	_, err := s.claimCall(script.ClaimCall{
		CID: cid, Entries: 100, Messages: 100, PerKey: perKey, Lease: lease,
		Upkeep: script.Upkeep{MaxLosses: 3, OnDeath: "continue", DeadKeep: time.Hour, DeadMax: 100},
	})
	return err
}

func (s *store) settle(call *script.SettleCall) error {
	got, err := s.set.Settle(s.ctx, s.run, s.names, call)
	if err == nil && len(got.Rest) > 0 {
		err = fmt.Errorf("settle refused %v", got.Rest)
	}
	return err
}

// member finds the member of an id by the envelope, as the model would write it.
func (s *store) member(id string) string {
	found, err := s.set.Find(s.ctx, s.run, s.names, id)
	if err != nil || found.Member == "" {
		panic(fmt.Sprintf("no message %s: %v", id, err))
	}
	return found.Member
}

// scriptCase is one way in which a script runs on a furnished queue. members are looked up beforehand, for the
// client that runs the case may be one that is not allowed to.
type scriptCase struct {
	name  string // the script's, and what it does
	reads bool   // changes nothing
	needs []string
	run   func(s *store, member func(string) string) error
}

func (c scriptCase) script() string {
	name, _, _ := strings.Cut(c.name, " ")
	return name
}

// lookUp prepares the members that a case names.
func (c scriptCase) lookUp(s *store) func(string) string {
	known := map[string]string{}
	for _, id := range c.needs {
		known[id] = s.member(id)
	}
	return func(id string) string {
		if known[id] == "" {
			panic("the case does not say that it needs " + id)
		}
		return known[id]
	}
}

// scriptCases are all scripts, and all that claim and settle can do.
func scriptCases() []scriptCase {
	list := append(enqueueCases(), claimCases()...)
	list = append(list, settleCases()...)
	return append(list, adminCases()...)
}

func enqueueCases() []scriptCase {
	return []scriptCase{{name: "enqueue batch", run: func(s *store, _ func(string) string) error {
		list := append(placements(1, "n1", "n2 a", "n3 b", "n4 fresh", "p1", "n1"), script.Placement{
			ID: "n5", Score: "9", Due: script.After(time.Minute),
		})
		_, err := s.enqueue("token", list)
		return err
	}}}
}

func claimCases() []scriptCase {
	claim := func(cid string, suspects bool, u script.Upkeep) func(*store, func(string) string) error {
		return func(s *store, _ func(string) string) error {
			_, err := s.claimCall(script.ClaimCall{
				CID: cid, Entries: 100, Messages: 100, PerKey: 10, Lease: time.Minute, Suspects: suspects, Upkeep: u,
			})
			return err
		}
	}
	trims := anyUpkeep()
	trims.DeadMax = 1
	reap := func(losses int, policy string) func(*store, func(string) string) error {
		return func(s *store, _ func(string) string) error {
			u := anyUpkeep()
			u.MaxLosses, u.OnDeath = losses, policy
			_, _, err := s.set.Reap(s.ctx, s.run, s.names, u)
			return err
		}
	}
	heartbeat := func(s *store, _ func(string) string) error {
		_, err := s.set.Heartbeat(s.ctx, s.run, s.names, time.Minute, script.Worker{ID: "w", About: "one"}, []string{cidLive, cidOver, cidGone})
		return err
	}
	return []scriptCase{
		{name: "claim served", run: claim("new", false, anyUpkeep())},
		{name: "claim suspect", run: claim("new", true, anyUpkeep())},
		{name: "claim repeat", run: claim(cidLive, false, anyUpkeep())},
		{name: "claim trims", run: claim("new", false, trims)},
		{name: "reap all", run: reap(3, "continue")},
		{name: "reap buries", run: reap(1, "halt")},
		{name: "heartbeat all", run: heartbeat},
	}
}

func adminCases() []scriptCase {
	type lookup = func(string) string
	pause := func(on bool) func(*store, lookup) error {
		return func(s *store, _ lookup) error {
			_, err := s.set.Pause(s.ctx, s.run, s.names, on)
			return err
		}
	}
	replay := func(id string, atEnd bool) func(*store, lookup) error {
		return func(s *store, member lookup) error {
			_, err := s.set.Replay(s.ctx, s.run, s.names, "token", member(id), atEnd)
			return err
		}
	}
	return []scriptCase{
		{name: "pause on", run: pause(true)},
		{name: "pause off", run: pause(false)},
		{name: "replay original", needs: []string{"z1"}, run: replay("z1", false)},
		{name: "replay now, keyed", needs: []string{"q1"}, run: replay("q1", true)},
		{name: "resume_key halted", run: func(s *store, _ lookup) error {
			_, err := s.set.ResumeKey(s.ctx, s.run, s.names, "h")
			return err
		}},
		{name: "remove_dead z1", needs: []string{"z1"}, run: func(s *store, member lookup) error {
			_, err := s.set.RemoveDead(s.ctx, s.run, s.names, member("z1"))
			return err
		}},
		{name: "find a1", reads: true, run: func(s *store, _ lookup) error {
			_, err := s.set.Find(s.ctx, s.run, s.names, "a1")
			return err
		}},
		{name: "depth", reads: true, run: func(s *store, _ lookup) error {
			_, err := s.set.Depth(s.ctx, s.run, s.names)
			return err
		}},
		{name: "verify", reads: true, run: func(s *store, _ lookup) error {
			_, _, err := s.set.Verify(s.ctx, s.run, s.names, 1000, 10)
			return err
		}},
		{name: "keys", reads: true, run: func(s *store, _ lookup) error {
			_, _, err := s.set.Keys(s.ctx, s.run, s.names, 0, 10)
			return err
		}},
	}
}
