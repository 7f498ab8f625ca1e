package script_test

import "slices"

// settlement is what a claim reports of its messages: plain acks and those with a window first, then the
// rest one by one.
type settlement struct {
	cid      string
	acks     []string
	windowed []string
	keep     int64 // of all windowed
	others   []outcome
	giveUp   bool
	deadKeep int64
	deadMax  int
}

type outcome struct {
	member, verb string // ack, retry, dead or cancel

	keep    int64 // ack
	effects []effect
	follow  []draft
	rouse   []string

	delay         int64 // retry
	charge, block bool
	err, trace    string

	reason, policy string // dead
}

type refusal struct{ index, code int }

// settle answers how many took effect and, for the rest, why not: 0 settled before, -1 the lease is over,
// above that one more than the place of the effect that may not be.
func (m *model) settle(s settlement) (int, []refusal) {
	members := slices.Concat(s.acks, s.windowed)
	for _, o := range s.others {
		members = append(members, o.member)
	}
	why, alive := m.standing(s.cid)
	if !alive {
		return 0, m.refuseAll(s, members, why)
	}
	held := make([]bool, len(members))
	for i, member := range members {
		_, held[i] = m.claims[s.cid][member]
	}
	applied, rest := 0, []refusal(nil)
	note := func(i, code int) {
		if code == 1 {
			applied++
		} else {
			rest = append(rest, refusal{i, code})
		}
	}
	plain, windowed := len(s.acks)+len(s.windowed), false
	for i, member := range members[:plain] {
		if _, ok := m.claims[s.cid][member]; !ok {
			note(i, 0)
			continue
		}
		m.ack(s.cid, member)
		if i >= len(s.acks) && !m.plain(member) {
			m.done[m.field(member)] = m.now + s.keep
			windowed = true
		}
		note(i, 1)
	}
	for i, o := range s.others {
		code := 1
		if _, ok := m.claims[s.cid][o.member]; ok {
			code = m.apply(s.cid, o)
		} else if !held[plain+i] {
			code = 0
		}
		note(plain+i, code)
	}
	if s.giveUp {
		m.giveUp(s.cid)
	}
	if len(m.claims[s.cid]) == 0 {
		delete(m.claims, s.cid)
		delete(m.leases, s.cid)
	}
	if windowed {
		m.forgetDone()
	}
	m.tidy(s)
	return applied, rest
}

// standing tells whether a claim may still settle, and if not, why.
func (m *model) standing(cid string) (code int, alive bool) {
	end, there := m.leases[cid]
	if there {
		return -1, end > m.now
	}
	if _, gone := m.reaped[cid]; gone {
		return -1, false
	}
	return 0, false
}

func (m *model) refuseAll(s settlement, members []string, why int) []refusal {
	var rest []refusal
	for i := range members {
		rest = append(rest, refusal{i, why})
	}
	if why == -1 && len(members) > 0 {
		m.stats["refused"] += int64(len(members))
	}
	m.tidy(s)
	return rest
}

// tidy is the upkeep that comes with some settlements.
func (m *model) tidy(s settlement) {
	if len(s.others) > 0 {
		m.trim(s.deadKeep, s.deadMax)
	}
}

// take removes a member from its claim and tells the score that it had.
func (m *model) take(cid, member string) float64 {
	score := m.claims[cid][member]
	delete(m.claims[cid], member)
	return score
}

func (m *model) ack(cid, member string) {
	m.take(cid, member)
	m.forget(m.field(member))
	if m.plain(member) {
		m.stats["acked_plain"]++
		return
	}
	m.count("acked")
	m.letGo(cid, m.keyOf(member))
}

// letGo: one message of a key has left the claim; with the last the key is free.
func (m *model) letGo(cid, key string) {
	if key == "" {
		return
	}
	l := m.locks[key]
	if l.owner != cid {
		return
	}
	if l.claimed > 1 {
		l.claimed--
		m.locks[key] = l
		return
	}
	m.release(key, l.alone)
}

func (m *model) apply(cid string, o outcome) int {
	if _, marked := m.cancels[m.field(o.member)]; o.verb == "cancel" || marked && o.verb != "ack" {
		m.strike(cid, o.member, o.verb == "retry" && o.block || o.verb == "dead" && o.policy != "continue")
		return 1
	}
	switch o.verb {
	case "retry":
		m.retry(cid, o)
	case "dead":
		m.die(cid, o)
	default:
		if at := m.refused(o.effects); at > 0 {
			return at + 1
		}
		m.applyEffects(o.effects)
		// A follow-up sees the message that it follows: still there, still holding its key.
		m.place(o.follow)
		m.rouse(o.rouse)
		m.ack(cid, o.member)
		if o.keep > 0 && !m.plain(o.member) {
			m.done[m.field(o.member)] = m.now + o.keep
		}
	}
	return 1
}

// strike ends a message that was cancelled; its key goes on, after those of it that the claim holds went back.
func (m *model) strike(cid, member string, back bool) {
	m.take(cid, member)
	m.endCancelled(member)
	key := m.keyOf(member)
	if key == "" {
		return
	}
	if !back {
		m.letGo(cid, key)
		return
	}
	alone := m.locks[key].alone
	m.sendBack(cid, key)
	m.release(key, alone)
}

func (m *model) endCancelled(member string) {
	m.forget(m.field(member))
	if !m.plain(member) {
		m.stats["cancelled"]++
	}
}

// rouse brings delayed messages forward.
func (m *model) rouse(ids []string) {
	for _, id := range ids {
		msg := m.messages[id]
		if msg == nil {
			continue
		}
		if _, delayed := m.delayed[msg.member]; delayed {
			m.wakeMessage(msg.member)
		}
	}
}

func (m *model) retry(cid string, o outcome) {
	key, rec := m.keyOf(o.member), m.record(o.member)
	if o.trace != "" {
		rec.trace = o.trace
	}
	if o.charge {
		rec.attempts++
		rec.err = o.err
		m.count("failed")
	}
	score := m.claims[cid][o.member]
	rec.alone, rec.score = false, number(score)
	if rec.empty() && o.delay == 0 {
		delete(m.records, m.field(o.member))
	} else {
		m.records[m.field(o.member)] = rec
	}
	if key != "" && o.block {
		alone := m.locks[key].alone
		m.sendBack(cid, key)
		if o.delay > 0 {
			m.block(key, lock{owner: asleep, due: m.now + o.delay})
		} else {
			m.release(key, alone)
		}
		return
	}
	m.take(cid, o.member)
	switch {
	case o.delay > 0:
		m.delayed[o.member] = float64(m.now + o.delay)
	case key != "":
		m.waiting(key)[o.member] = score
	case rec.losses > 0:
		m.suspect[o.member] = score
	default:
		m.ready[o.member] = score
	}
	m.letGo(cid, key)
}

// sendBack returns all that a claim holds of a key to its lane, uncharged.
func (m *model) sendBack(cid, key string) {
	for member, score := range m.claims[cid] {
		if m.keyOf(member) != key {
			continue
		}
		delete(m.claims[cid], member)
		if _, marked := m.cancels[m.field(member)]; marked {
			m.endCancelled(member)
			continue
		}
		m.waiting(key)[member] = score
		m.unmark(member)
	}
}

// unmark: a message that outlived being claimed alone is not blamed for it later.
func (m *model) unmark(member string) {
	rec, known := m.records[m.field(member)]
	if !known || !rec.alone {
		return
	}
	rec.alone = false
	m.records[m.field(member)] = rec
	if rec.empty() {
		delete(m.records, m.field(member))
	}
}

func (m *model) die(cid string, o outcome) {
	key, rec := m.keyOf(o.member), m.record(o.member)
	if o.trace != "" {
		rec.trace = o.trace
	}
	rec.attempts++
	rec.alone = false
	m.count("failed")
	m.bury(o.member, m.take(cid, o.member), rec, o.reason, o.err)
	if key == "" {
		return
	}
	if o.policy == "continue" {
		m.letGo(cid, key)
		return
	}
	alone := m.locks[key].alone
	m.sendBack(cid, key)
	m.afterDeath(key, o.policy, alone)
}

// giveUp returns all that is left, uncharged.
func (m *model) giveUp(cid string) {
	for _, member := range m.claims[cid].sorted() {
		if _, still := m.claims[cid][member]; still {
			m.apply(cid, outcome{member: member, verb: "retry", block: true})
		}
	}
}
