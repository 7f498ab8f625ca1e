package script_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// machine drives the scripts and the model side by side.
type machine struct {
	s *store
	m *model

	cids     []string            // in the order of their first use
	served   map[string][]string // what a claim ever got, by cid
	settled  []settlement
	enqueued []enqueuing
	tokens   []token        // of checkpoints
	replays  []token        // of replays that took place
	sessions map[string]int // the number of their last call
	serial   int

	claimable zset // before the step
	silent    bool // the step may make something claimable without the wake-up marker
	steps     int
	older     bool           // an older library takes part: only what it knows is done, and looked at
	reached   map[string]int // what happened, and how often
}

type enqueuing struct {
	token token
	list  []draft
}

const (
	leaseTime = int64(10_000_000)
	epoch     = int64(1_764_489_240_000_000)
	hour      = int64(3_600_000_000)
)

func newMachine(s *store) (*machine, error) {
	x := &machine{s: s, m: newModel(epoch), served: map[string][]string{}, sessions: map[string]int{}, reached: map[string]int{}}
	return x, s.setTime(x.m.now)
}

// actions lists the steps; what is to come more often stands more often.
func (x *machine) actions() map[string]func(*rapid.T) {
	once := map[string]func(*rapid.T){
		"enqueue again": x.enqueueAgain, "claim again": x.claimAgain,
		"ack windowed": x.ackWindowed, "ack with": x.ackWith, "dead": x.dead, "give up": x.giveUp, "mixed": x.mixed,
		"settle stale": x.settleStale, "settle again": x.settleAgain, "heartbeat": x.heartbeat, "reap": x.reap,
		"pause": x.pause, "replay": x.replay, "remove dead": x.removeDead, "resume key": x.resumeKey,
		"plain": x.plain, "checkpoint": x.checkpoint, "flush scripts": x.flushScripts, "find": x.find, "keys": x.keys,
	}
	often := map[string]func(*rapid.T){
		"enqueue": x.enqueueOne, "enqueue batch": x.enqueueBatch, "claim": x.claim, "ack": x.ack, "retry": x.retry,
		"advance": x.advance, "crash": x.crash,
	}
	all := map[string]func(*rapid.T){"": x.check}
	for name, do := range once {
		if !x.older || slices.Contains(firstActions(), name) {
			all[name] = x.step(do)
		}
	}
	for name, do := range often {
		for i := range 3 {
			all[fmt.Sprintf("%s %d", name, i)] = x.step(do)
		}
	}
	return all
}

func (x *machine) step(do func(*rapid.T)) func(*rapid.T) {
	return func(t *rapid.T) {
		x.silent = false
		do(t)
		x.steps++
	}
}

// check compares everything after a step.
func (x *machine) check(t *rapid.T) {
	got, err := x.s.read()
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	want := x.m.view()
	if x.older {
		want.Since, want.History, got.Since, got.History = nil, nil, nil, nil
	}
	if diff := cmp.Diff(want.meaning(x.m.field), got.meaning(x.m.field)); diff != "" {
		t.Fatalf("the store differs (-model +redis):\n%s", diff)
	}
	seen, problems, err := x.verify()
	if err != nil || len(problems) > 0 || int(seen) != len(x.m.messages) {
		t.Fatalf("verify saw %d of %d messages: %v\n%s", seen, len(x.m.messages), err, strings.Join(problems, "\n"))
	}
	x.checkDepth(t)
	x.checkWake(t)
	x.tally()
}

// firstActions are those that the oldest library knows.
func firstActions() []string {
	return []string{
		"enqueue again", "claim again", "ack windowed", "ack with", "dead", "give up", "mixed", "settle stale", "settle again",
		"heartbeat", "reap", "pause", "replay", "remove dead", "resume key", "plain", "checkpoint", "flush scripts", "find", "keys",
	}
}

// verify leaves out what an older library cannot keep right.
func (x *machine) verify() (int64, []string, error) {
	seen, problems, err := x.s.set.Verify(x.s.ctx, x.s.run, x.s.names, 1000, 20)
	if x.older {
		problems = slices.DeleteFunc(problems, func(p string) bool {
			return strings.HasSuffix(p, " since nobody knows when") || strings.HasSuffix(p, " is free, but said to be blocked")
		})
	}
	return seen, problems, err
}

// tally notes in which states the queue has been, so that a test can tell that it was everywhere.
func (x *machine) tally() {
	for _, l := range x.m.locks {
		switch l.owner {
		case asleep, suspected, halted, dying:
			x.reached["key "+l.owner]++
		default:
			x.reached["key held"]++
		}
		if l.alone > 1 {
			x.reached["several alone"]++
		}
	}
	for _, r := range x.m.records {
		if r.losses > 0 {
			x.reached["lossy"]++
		}
	}
	for _, s := range x.m.stories {
		x.reached["dead of "+s.reason]++
	}
}

func (x *machine) checkDepth(t *rapid.T) {
	d, err := x.s.set.Depth(x.s.ctx, x.s.run, x.s.names)
	if err != nil {
		t.Fatalf("depth: %v", err)
	}
	want := x.m.depth()
	got := depth{
		envelopes: int(d.Envelopes), ready: int(d.Ready), delayed: int(d.Delayed), suspect: int(d.Suspect),
		dead: int(d.Dead), running: int(d.Running), held: int(d.KeysHeld), asleep: int(d.KeysAsleep),
		suspectKeys: int(d.KeysSuspect), halted: int(d.KeysHalted), dying: int(d.KeysDying), claims: int(d.Claims),
		oldest: d.OldestReady, paused: d.Paused, done: int(d.DedupeRecords),
	}
	if got != want || d.Now != x.m.now {
		t.Fatalf("depth at %d:\n got %+v\nwant %+v", d.Now, got, want)
	}
}

// checkWake: whatever has become claimable in a step is announced, or an idle consumer sleeps past it.
func (x *machine) checkWake(t *rapid.T) {
	now := zset{}
	if !x.m.paused { // all of it is announced when the queue resumes
		now = x.m.entries()
		maps.Copy(now, x.m.suspects())
	}
	removed, err := x.s.rdb.Del(x.s.ctx, x.s.names.Wake).Result()
	if err != nil {
		t.Fatalf("wake: %v", err)
	}
	if removed == 0 && !x.silent {
		for member := range now {
			if _, before := x.claimable[member]; !before {
				t.Fatalf("%q has become claimable, but nobody is woken", member)
			}
		}
	}
	x.claimable = now
}

// same compares a reply with the model's.
func same(t *rapid.T, what string, want, got any, err error) {
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(answer{}, refusal{})); diff != "" {
		t.Fatalf("%s (-model +redis):\n%s", what, diff)
	}
}

func oneOf[T any](t *rapid.T, label string, list ...T) T {
	return rapid.SampledFrom(list).Draw(t, label)
}

func ids() []string {
	list := make([]string, 20)
	for i := range list {
		list[i] = fmt.Sprintf("job:%d", i+1)
	}
	return list
}

// orderingKeys have braces, bytes that are no text, and a length that takes two bytes in an envelope.
func orderingKeys() []string { return []string{"a", "b}{c", "\xff\x01:|", strings.Repeat("k", 130)} }

func (x *machine) draft(t *rapid.T) draft {
	x.serial++
	d := draft{id: oneOf(t, "id", ids()...), body: fmt.Sprintf("\x1a\x05body%d\x00\xff", x.serial)}
	d.key = oneOf(t, "key", append(orderingKeys(), "a", "a", "", "", "")...)
	d.score = oneOf(t, "score", "", "", "", "5", "5", "-7", "9007199254740991", "-9007199254740991")
	if rapid.IntRange(0, 3).Draw(t, "delayed") == 0 {
		d.due = x.m.now + oneOf(t, "due", -1, 1, leaseTime/2, leaseTime, 3*leaseTime)
	}
	return d
}

// placements are drafts as the scripts take them; delays and instants mean the same.
func (x *machine) placements(list []draft, instants bool) []script.Placement {
	out := make([]script.Placement, len(list))
	for i, d := range list {
		out[i] = script.Placement{ID: d.id, Key: d.key, Score: d.score, Envelope: []byte(d.body)}
		if d.due == 0 {
			continue
		}
		out[i].Due = script.After(time.Duration(d.due-x.m.now) * time.Microsecond)
		if instants {
			out[i].Due = script.At(time.UnixMicro(d.due))
		}
	}
	return out
}

func (x *machine) enqueueOne(t *rapid.T) {
	x.enqueue(t, enqueuing{x.token(t, "e"), []draft{x.draft(t)}})
}

func (x *machine) enqueueBatch(t *rapid.T) {
	list := make([]draft, rapid.IntRange(2, 6).Draw(t, "n"))
	for i := range list {
		list[i] = x.draft(t)
	}
	x.enqueue(t, enqueuing{x.token(t, "e"), list})
}

// token names the next call of one of two sessions, or a call of its own, or none.
func (x *machine) token(t *rapid.T, kind string) token {
	switch i := rapid.IntRange(0, 4).Draw(t, "token"); i {
	case 0, 1:
		session := fmt.Sprint(kind, ":", i)
		x.sessions[session]++
		return token{session, x.sessions[session]}
	case 2:
		x.serial++
		return token{session: fmt.Sprint("token", x.serial)}
	}
	return token{}
}

// late sees that a call which comes after a later one of its session is refused.
func (x *machine) late(t *rapid.T, name token, err error) bool {
	if _, _, late := x.m.asked(name); !late {
		return false
	}
	if err == nil || !strings.Contains(err.Error(), "ZQLATE") {
		t.Fatalf("the late call %s: %v", name, err)
	}
	x.reached["late"]++
	return true
}

// enqueueAgain sends an earlier call again, as after a lost reply.
func (x *machine) enqueueAgain(t *rapid.T) {
	if len(x.enqueued) == 0 {
		t.SkipNow()
	}
	x.enqueue(t, oneOf(t, "call", x.enqueued...))
}

func (x *machine) enqueue(t *rapid.T, call enqueuing) {
	t.Logf("> enqueue %q %+v", call.token, call.list)
	if _, again, _ := x.m.asked(call.token); again {
		x.reached["token repeated"]++
	}
	list := x.placements(call.list, x.serial%2 == 0)
	got, err := x.s.set.Enqueue(x.s.ctx, x.s.run, x.s.names, 0, call.token.String(), list)
	if x.late(t, call.token, err) {
		return
	}
	first, states := x.m.enqueue(call.token, call.list)
	same(t, "enqueue", script.Placed{First: first, States: states}, got, err)
	x.enqueued = append(x.enqueued, call)
	x.enqueued = x.enqueued[max(0, len(x.enqueued)-8):]
}

func (x *machine) upkeep(t *rapid.T) upkeep {
	return upkeep{
		promote: oneOf(t, "promote", 0, 1, 1, 2, 3, 6), reap: rapid.IntRange(0, 3).Draw(t, "reap"),
		losses: oneOf(t, "losses", 1, 2, 3, 3, 4), policy: x.policy(t),
		deadKeep: hour, deadMax: oneOf(t, "dead max", 2, 1000),
	}
}

func (x *machine) policy(t *rapid.T) string { return oneOf(t, "policy", "continue", "halt", "key") }

func (u upkeep) call() script.Upkeep {
	return script.Upkeep{
		Promote: u.promote, Reap: u.reap, MaxLosses: u.losses, OnDeath: u.policy,
		DeadKeep: time.Duration(u.deadKeep) * time.Microsecond, DeadMax: u.deadMax,
	}
}

// claim takes work under a fresh id; with four claims at work one of them asks again.
func (x *machine) claim(t *rapid.T) {
	if live := slices.Sorted(maps.Keys(x.m.claims)); len(live) >= 4 {
		x.claimAs(t, oneOf(t, "cid", live...))
		return
	}
	x.serial++
	x.claimAs(t, fmt.Sprintf("c%d", x.serial))
}

// claimAgain asks under an id that was used: of a claim at work, settled or reaped.
func (x *machine) claimAgain(t *rapid.T) {
	if len(x.cids) == 0 {
		t.SkipNow()
	}
	x.claimAs(t, x.anyCID(t))
}

func (x *machine) anyCID(t *rapid.T) string {
	return oneOf(t, "cid", x.cids[max(0, len(x.cids)-8):]...)
}

func (x *machine) claimAs(t *rapid.T, cid string) {
	r := request{
		cid: cid, entries: rapid.IntRange(1, 5).Draw(t, "entries"), perKey: rapid.IntRange(1, 4).Draw(t, "per key"),
		lease: leaseTime, suspects: rapid.IntRange(0, 3).Draw(t, "suspects") > 0, upkeep: x.upkeep(t),
	}
	r.messages = r.entries + rapid.IntRange(0, 6).Draw(t, "more messages")
	t.Logf("> claim %+v", r)
	got, err := x.s.set.Claim(x.s.ctx, x.s.run, x.s.names, script.ClaimCall{
		CID: cid, Entries: r.entries, Messages: r.messages, PerKey: r.perKey, Suspects: r.suspects,
		Lease: time.Duration(r.lease) * time.Microsecond, Upkeep: r.upkeep.call(),
	})
	want := x.m.claim(r)
	x.reached["claim "+want.status]++
	// It may have carried over a suspect that it would not take. Whoever would, sleeps no longer than until it
	// was due.
	x.silent = want.status == "empty"
	same(t, "claim", x.claimed(cid, want), normal(got), err)
	if !slices.Contains(x.cids, cid) {
		x.cids = append(x.cids, cid)
	}
	x.served[cid] = append(x.served[cid], want.members...)
}

// claimed is the model's answer as the script's.
func (x *machine) claimed(cid string, a answer) script.Claimed {
	out := script.Claimed{Status: a.status, Fence: a.fence, Now: x.m.now, NextDue: a.next, Shape: script.Shape{Partitions: 1}}
	for _, member := range a.members {
		t := script.Taken{Member: member, Score: number(x.m.claims[cid][member])}
		if msg := x.m.everKnown[member]; msg != nil {
			t.Envelope, t.HasEnvelope = msg.body, true
		}
		r := x.m.record(member)
		t.Record = script.Record{
			Attempts: r.attempts, Losses: r.losses, Alone: r.alone, Replays: r.replays, Trace: r.trace, Error: r.err,
		}
		out.Messages = append(out.Messages, t)
	}
	return out
}

func normal(c script.Claimed) script.Claimed {
	for i := range c.Messages {
		c.Messages[i].Score = canonical(c.Messages[i].Score)
		c.Messages[i].Record.Score = ""
	}
	return c
}
