package script_test

import (
	"math"
	"slices"
	"strings"
)

// request is a claim as the model takes it; upkeep is what claim and reap do on the side.
type request struct {
	cid                       string
	entries, messages, perKey int
	lease                     int64
	suspects                  bool
	upkeep
}

type upkeep struct {
	promote, reap, losses int
	policy                string
	deadKeep              int64
	deadMax               int
}

type answer struct {
	status      string
	fence, next int64
	members     []string
}

func (m *model) claim(r request) answer {
	if held := m.claims[r.cid]; len(held) > 0 {
		return m.answer("repeat", held.sorted())
	}
	m.reap(r.upkeep)
	m.promote(r.promote)
	m.trim(r.deadKeep, r.deadMax)
	if m.paused {
		return m.answer("paused", nil)
	}
	if r.suspects {
		if member, ok := m.takeSuspect(r.cid); ok {
			m.leases[r.cid] = m.now + r.lease
			delete(m.reaped, r.cid)
			return m.answer("suspect", []string{member})
		}
	}
	taken := m.takeReady(r)
	if len(taken) == 0 {
		return m.answer("empty", nil)
	}
	m.leases[r.cid] = m.now + r.lease
	delete(m.reaped, r.cid)
	return m.answer("served", taken)
}

// answer gives a fence with messages, and without them the next instant at which something may be due.
func (m *model) answer(status string, members []string) answer {
	if len(members) > 0 {
		m.seq = m.nextSequence()
		return answer{status: status, fence: m.seq, members: members}
	}
	next := int64(math.MaxInt64)
	if _, due, ok := m.asleepOrDelayed().first(); ok {
		next = int64(due)
	}
	for _, end := range m.leases {
		next = min(next, end)
	}
	if next == math.MaxInt64 {
		next = 0
	}
	return answer{status: status, next: next}
}

func (m *model) hold(cid, member string, score float64) {
	if m.claims[cid] == nil {
		m.claims[cid] = zset{}
	}
	m.claims[cid][member] = score
}

// takeSuspect takes one message under suspicion, so that the next death can be charged to it.
func (m *model) takeSuspect(cid string) (string, bool) {
	member, score, ok := m.suspects().first()
	if !ok {
		return "", false
	}
	if key, isKey := entryKey(member); isKey {
		member, score, _ = m.waiting(key).first()
		delete(m.waiting(key), member)
		m.locks[key] = lock{owner: cid, claimed: 1, alone: max(m.locks[key].alone-1, 0)}
	} else {
		delete(m.suspect, member)
	}
	rec := m.record(member)
	rec.alone = true
	m.records[m.field(member)] = rec
	m.hold(cid, member, score)
	return member, true
}

func entryKey(member string) (string, bool) {
	return strings.CutPrefix(member, "\x00")
}

// takeReady takes the lowest entries; each key among them gives its share of what may still be taken, but
// one at least.
func (m *model) takeReady(r request) []string {
	entries := m.entries()
	lowest := entries.sorted()[:min(r.entries, len(entries))]
	var taken, keys []string
	for _, member := range lowest {
		if key, isKey := entryKey(member); isKey {
			keys = append(keys, key)
			continue
		}
		m.hold(r.cid, member, m.ready[member])
		delete(m.ready, member)
		taken = append(taken, member)
	}
	for i, key := range keys {
		left, sharers := r.messages-len(taken), len(keys)-i
		share := max(1, min(r.perKey, (left+sharers-1)/sharers))
		lane := m.waiting(key)
		mine := lane.sorted()[:min(share, len(lane))]
		for _, member := range mine {
			m.hold(r.cid, member, lane[member])
			delete(lane, member)
		}
		m.locks[key] = lock{owner: r.cid, claimed: len(mine)}
		taken = append(taken, mine...)
	}
	return taken
}

// reap gives back what claims held whose lease is over: nobody is charged but who was alone.
func (m *model) reap(u upkeep) int {
	ends := zset{}
	for cid, end := range m.leases {
		ends[cid] = float64(end)
	}
	over := ends.upTo(float64(m.now), u.reap)
	for _, cid := range over {
		delete(m.leases, cid)
		m.reaped[cid] = m.now
		m.stats["rescued"] += int64(len(m.claims[cid]))
		m.reapClaim(cid, u)
	}
	if len(over) > 0 {
		m.stats["reaped"] += int64(len(over))
		m.forgetReaped()
	}
	return len(over)
}

func (m *model) forgetReaped() {
	at := zset{}
	for cid, when := range m.reaped {
		at[cid] = float64(when)
	}
	for _, cid := range at.upTo(float64(m.now-24*3600*1_000_000), 100) {
		delete(m.reaped, cid)
	}
}

func (m *model) reapClaim(cid string, u upkeep) {
	held := m.claims[cid]
	delete(m.claims, cid)
	back, died := map[string]int{}, map[string]bool{}
	for _, member := range held.sorted() {
		key := m.keyOf(member)
		if _, marked := m.cancels[m.field(member)]; marked {
			m.endCancelled(member)
			continue
		}
		if m.blame(member, held[member], u.losses) {
			died[key] = true
			continue
		}
		if key == "" {
			m.suspect[member] = held[member]
			continue
		}
		back[key]++
		m.waiting(key)[member] = held[member]
	}
	for key, l := range m.locks {
		switch {
		case l.owner != cid:
		case died[key]:
			m.afterDeath(key, u.policy, l.alone)
		default:
			m.release(key, back[key]+l.alone)
		}
	}
}

// blame charges a message that was alone with its worker's death; it says whether that was one too many.
func (m *model) blame(member string, score float64, most int) bool {
	rec := m.record(member)
	if !rec.alone {
		return false
	}
	rec.alone = false
	rec.losses++
	m.records[m.field(member)] = rec
	if rec.losses < most {
		return false
	}
	m.bury(member, score, rec, "lost", "its worker died or lost its lease")
	return true
}

// promote moves what is due, in due order, to where it can be claimed.
func (m *model) promote(most int) int {
	due := m.asleepOrDelayed().upTo(float64(m.now), most)
	for _, member := range due {
		if key, isKey := entryKey(member); isKey {
			m.wakeKey(key, most)
		} else {
			m.wakeMessage(member)
		}
	}
	return len(due)
}

// wakeKey ends a key's sleep. A dying key's lane follows its head, a bounded number a call.
func (m *model) wakeKey(key string, most int) {
	if m.locks[key].owner == asleep {
		m.release(key, 0)
		return
	}
	lane := m.waiting(key)
	doomed := lane.sorted()
	doomed = doomed[:min(most, len(doomed))]
	for _, member := range doomed {
		m.bury(member, lane[member], m.record(member), "key", "an earlier message of its key died")
		delete(lane, member)
	}
	if len(doomed) < most {
		m.release(key, 0)
	}
}

func (m *model) wakeMessage(member string) {
	rec := m.record(member)
	score := m.scoreOf(member, rec)
	delete(m.delayed, member)
	key := m.keyOf(member)
	switch {
	case key != "":
		m.waiting(key)[member] = score
		if m.locks[key].owner == "" {
			m.release(key, 0)
		}
	case rec.losses > 0:
		m.suspect[member] = score
	default:
		m.ready[member] = score
	}
	if rec.empty() {
		delete(m.records, m.field(member))
	}
}

// empty tells whether a record says nothing but a score.
func (r record) empty() bool {
	return r.attempts == 0 && r.losses == 0 && r.replays == 0 && !r.alone && r.trace == ""
}

// heartbeat extends leases that are not over; it names those that are.
func (m *model) heartbeat(lease int64, cids []string) []string {
	var lost []string
	for _, cid := range cids {
		_, gone := m.reaped[cid]
		end, there := m.leases[cid]
		if there && end <= m.now || !there && gone {
			lost = append(lost, cid)
		}
	}
	for _, cid := range cids {
		if _, there := m.leases[cid]; there && !slices.Contains(lost, cid) {
			m.leases[cid] = m.now + lease
		}
	}
	if len(lost) > 0 {
		m.stats["refused"] += int64(len(lost))
	}
	return lost
}
