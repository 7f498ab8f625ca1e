package script_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

func (x *machine) call(s settlement) *script.SettleCall {
	c := &script.SettleCall{
		CID: s.cid, Acks: s.acks, GiveUp: s.giveUp, DeadKeep: time.Duration(s.deadKeep) * time.Microsecond,
		DeadMax: s.deadMax,
	}
	keep := func(micros int64) time.Duration { return time.Duration(micros) * time.Microsecond }
	for _, member := range s.windowed {
		c.Windowed = append(c.Windowed, script.Window{Member: member, Keep: keep(s.keep)})
	}
	for _, o := range s.others {
		switch o.verb {
		case "ack":
			c.Others = append(c.Others, script.AckWith(o.member, keep(o.keep), effects(o.effects), x.placements(o.follow, true), o.rouse...))
		case "retry":
			c.Others = append(c.Others, script.Retry(o.member, keep(o.delay), o.charge, o.block, o.err, o.trace))
		default:
			c.Others = append(c.Others, script.Dead(o.member, o.reason, o.err, o.policy, o.trace))
		}
	}
	return c
}

func effects(list []effect) []script.Effect {
	var out []script.Effect
	for _, e := range list {
		var args []any
		for _, a := range e.args {
			args = append(args, a)
		}
		out = append(out, script.Effect{Name: e.name, Verb: e.verb, Args: args})
	}
	return out
}

func (x *machine) settle(t *rapid.T, s settlement) {
	s.deadKeep, s.deadMax = hour, oneOf(t, "dead max", 2, 1000)
	t.Logf("> settle %+v", s)
	got, err := x.s.set.Settle(x.s.ctx, x.s.run, x.s.names, x.call(s))
	applied, rest := x.m.settle(s)
	var refusals []refusal
	for _, r := range got.Rest {
		refusals = append(refusals, refusal{r.Index, r.Code})
	}
	same(t, "settle: applied", applied, got.Applied, err)
	same(t, "settle: refused", rest, refusals, nil)
	x.reached["settle applied"] += applied
	for _, r := range rest {
		x.reached["settle "+meaning(r.code)]++
	}
	x.settled = append(x.settled, s)
	x.settled = x.settled[max(0, len(x.settled)-8):]
}

func meaning(code int) string {
	switch code {
	case script.CodeRepeat:
		return "repeat"
	case script.CodeLost:
		return "lost"
	}
	return "effect refused"
}

// working chooses a claim that holds something, and some of what it holds; a few may be named twice, have
// been settled before, or belong to another claim.
func (x *machine) working(t *rapid.T) (string, []string) {
	cids := slices.Sorted(maps.Keys(x.m.claims))
	if len(cids) == 0 {
		t.SkipNow()
	}
	if live := x.m.live(); len(live) > 0 && rapid.IntRange(0, 5).Draw(t, "over") < 5 {
		cids = live
	}
	cid := oneOf(t, "claim", cids...)
	pool := x.m.claims[cid].sorted()
	switch rapid.IntRange(0, 7).Draw(t, "members") {
	case 0:
		pool = append(pool, x.served[cid]...)
	case 1:
		for _, other := range cids {
			pool = append(pool, x.m.claims[other].sorted()...)
		}
	case 2:
		return cid, pool
	}
	return cid, rapid.SliceOfN(rapid.SampledFrom(pool), 1, 4).Draw(t, "settled")
}

func (x *machine) ack(t *rapid.T) {
	cid, members := x.working(t)
	x.settle(t, settlement{cid: cid, acks: members})
}

func (x *machine) ackWindowed(t *rapid.T) {
	cid, members := x.working(t)
	x.settle(t, settlement{cid: cid, windowed: members, keep: x.window(t)})
}

func (x *machine) window(t *rapid.T) int64 { return oneOf(t, "window", 0, 1, leaseTime, 3*hour) }

func (x *machine) ackWith(t *rapid.T) {
	cid, members := x.working(t)
	x.settle(t, settlement{cid: cid, others: []outcome{x.ackOutcome(t, members[0])}})
}

func (x *machine) ackOutcome(t *rapid.T, member string) outcome {
	o := outcome{member: member, verb: "ack", keep: x.window(t), effects: x.effects(t)}
	for range rapid.IntRange(0, 2).Draw(t, "follow-ups") {
		o.follow = append(o.follow, x.draft(t))
	}
	if delayed := x.m.delayed.sorted(); len(delayed) > 0 && rapid.Bool().Draw(t, "rouse") {
		o.rouse = []string{x.m.field(oneOf(t, "roused", delayed...)), x.m.field(member), "nobody"}
		x.reached["roused"]++
	}
	return o
}

func (x *machine) effects(t *rapid.T) []effect {
	text, hash := oneOf(t, "name", "n1", "n2"), "h1"
	value := oneOf(t, "value", "1", "-3", "word")
	all := []effect{
		{text, "incrby", []string{"2"}}, {text, "equals", []string{"2"}}, {text, "absent", nil}, {text, "exists", nil},
		{text, "set", []string{value}}, {text, "del", nil}, {hash, "hset", []string{"f", value}}, {hash, "del", nil},
		{hash, "habsent", []string{"f"}}, {hash, "hequals", []string{"f", "1"}}, {hash, "absent", nil},
	}
	if rapid.IntRange(0, 5).Draw(t, "clash") == 0 {
		return []effect{{text, "set", []string{value}}, {text, "incrby", []string{"2"}}}
	}
	return rapid.SliceOfN(rapid.SampledFrom(all), 0, 2).Draw(t, "effects")
}

func (x *machine) retry(t *rapid.T) {
	cid, members := x.working(t)
	var s settlement
	for _, member := range members[:min(2, len(members))] {
		s.others = append(s.others, x.retryOutcome(t, member))
	}
	s.cid = cid
	x.settle(t, s)
}

func (x *machine) retryOutcome(t *rapid.T, member string) outcome {
	x.serial++
	return outcome{
		member: member, verb: "retry", delay: oneOf(t, "delay", 0, 1, leaseTime/2, 2*leaseTime),
		charge: rapid.Bool().Draw(t, "charge"), block: rapid.Bool().Draw(t, "block"),
		err: fmt.Sprintf("failed|%d\n\x00", x.serial), trace: x.trace(t),
	}
}

func (x *machine) trace(t *rapid.T) string {
	return oneOf(t, "trace", "", fmt.Sprintf("trace-%d", x.serial))
}

func (x *machine) dead(t *rapid.T) {
	cid, members := x.working(t)
	x.settle(t, settlement{cid: cid, others: []outcome{x.deadOutcome(t, members[0])}})
}

func (x *machine) deadOutcome(t *rapid.T, member string) outcome {
	x.serial++
	return outcome{
		member: member, verb: "dead", reason: "attempts", err: fmt.Sprintf("died|%d\x00\n", x.serial), policy: x.policy(t),
		trace: x.trace(t),
	}
}

func (x *machine) giveUp(t *rapid.T) {
	cid, members := x.working(t)
	x.settle(t, settlement{cid: cid, acks: members[:rapid.IntRange(0, 1).Draw(t, "acks")], giveUp: true})
}

// mixed settles in all ways in one call.
func (x *machine) mixed(t *rapid.T) {
	cid, members := x.working(t)
	s := settlement{cid: cid, keep: x.window(t), giveUp: rapid.IntRange(0, 4).Draw(t, "give up") == 0}
	for _, member := range members {
		switch rapid.IntRange(0, 4).Draw(t, "way") {
		case 0:
			s.acks = append(s.acks, member)
		case 1:
			s.windowed = append(s.windowed, member)
		case 2:
			s.others = append(s.others, x.ackOutcome(t, member))
		case 3:
			s.others = append(s.others, x.retryOutcome(t, member))
		default:
			s.others = append(s.others, x.deadOutcome(t, member))
		}
	}
	x.settle(t, s)
}

// settleStale speaks for a claim that was reaped, is over, or was settled to its end.
func (x *machine) settleStale(t *rapid.T) {
	cids := slices.DeleteFunc(slices.Clone(x.cids), func(cid string) bool {
		return slices.Contains(x.m.live(), cid) || len(x.served[cid]) == 0
	})
	if len(cids) == 0 {
		t.SkipNow()
	}
	cid := oneOf(t, "claim", cids...)
	member := oneOf(t, "member", x.served[cid]...)
	s := settlement{cid: cid, giveUp: rapid.Bool().Draw(t, "give up")}
	switch rapid.IntRange(0, 4).Draw(t, "way") {
	case 0:
		s.acks = []string{member}
	case 1:
		s.windowed, s.keep = []string{member}, hour
	case 2:
		s.others = []outcome{x.ackOutcome(t, member)}
	case 3:
		s.others = []outcome{x.retryOutcome(t, member)}
	default:
		s.others = []outcome{x.deadOutcome(t, member)}
	}
	x.settle(t, s)
}

// settleAgain sends an earlier call again, as after a lost reply.
func (x *machine) settleAgain(t *rapid.T) {
	if len(x.settled) == 0 {
		t.SkipNow()
	}
	x.settle(t, oneOf(t, "call", x.settled...))
}

func (x *machine) heartbeat(t *rapid.T) {
	if len(x.cids) == 0 {
		t.SkipNow()
	}
	cids := rapid.SliceOfN(rapid.SampledFrom(x.cids), 0, 5).Draw(t, "cids")
	micros := oneOf(t, "lease", leaseTime, leaseTime/3)
	t.Logf("> heartbeat %d %q", micros, cids)
	got, err := x.s.set.Heartbeat(x.s.ctx, x.s.run, x.s.names, time.Duration(micros)*time.Microsecond, script.Worker{}, cids)
	lost := x.m.heartbeat(micros, cids)
	same(t, "heartbeat", append([]string{}, lost...), got.Lost, err)
}

func (x *machine) checkpoint(t *rapid.T) {
	cid, members := x.working(t)
	name := x.token(t, "c")
	if len(x.tokens) > 0 && rapid.IntRange(0, 3).Draw(t, "again") == 0 {
		name = oneOf(t, "token", x.tokens...)
	}
	list := x.effects(t)
	t.Logf("> checkpoint %q %s %q %+v", name, cid, members[0], list)
	got, err := x.s.set.Checkpoint(x.s.ctx, x.s.run, x.s.names, name.String(), cid, members[0], effects(list))
	if x.late(t, name, err) {
		return
	}
	code := x.m.checkpoint(name, cid, members[0], list)
	same(t, "checkpoint", code, got, err)
	if code == 1 {
		x.reached["checkpoint"]++
	}
	x.tokens = append(x.tokens, name)
}
