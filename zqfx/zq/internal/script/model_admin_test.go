package script_test

import (
	"maps"
	"slices"
	"strconv"
)

func (m *model) pause(on bool) bool {
	changed := m.paused != on
	m.paused = on
	return changed
}

func (m *model) resumeKey(key string) bool {
	_, was := m.holds[key]
	delete(m.holds, key)
	if owner := m.locks[key].owner; owner != halted && owner != held {
		return was
	}
	m.release(key, m.locks[key].alone)
	return true
}

func (m *model) removeDead(member string) bool {
	_, there := m.dead[member]
	if there {
		m.purge(member)
	}
	return there
}

// replay sends a dead letter back with fresh attempts, at its old score or at the end. What is not a dead
// letter does not move; the answer is where it is instead.
func (m *model) replay(t token, member string, atEnd bool) (bool, string) {
	switch _, again, late := m.asked(t); {
	case late:
		return false, ""
	case again:
		return true, "p"
	}
	if _, there := m.dead[member]; !there {
		if msg := m.messages[m.field(member)]; msg != nil && !m.plain(member) {
			return false, m.letterOf(msg.member)
		}
		return false, ""
	}
	was := m.stories[m.field(member)]
	rec := record{replays: was.replays + 1, score: was.score, trace: was.trace, err: was.reason + ": " + was.err}
	if atEnd {
		m.seq = m.nextSequence()
		rec.score = strconv.FormatInt(m.seq, 10)
	}
	delete(m.dead, member)
	delete(m.stories, m.field(member))
	m.records[m.field(member)] = rec
	score := m.scoreOf(member, rec)
	if key := m.keyOf(member); key == "" {
		m.ready[member] = score
	} else {
		m.waiting(key)[member] = score
		if m.locks[key].owner == "" {
			m.release(key, 0)
		}
	}
	m.stats["replayed"]++
	m.note(t, "p")
	return true, "p"
}

func (m *model) reapCall(u upkeep) (int, int) {
	reaped := m.reap(u)
	promoted := m.promote(u.promote)
	m.forgetDone()
	m.forgetOps(500)
	return reaped, promoted
}

// effect is a verb or a precondition on a key of the user's.
type effect struct {
	name, verb string
	args       []string
}

// checkpoint answers 1 when the effects are applied, now or before under this token.
func (m *model) checkpoint(t token, cid, member string, list []effect) int {
	switch _, again, late := m.asked(t); {
	case late:
		return 0
	case again:
		return 1
	}
	_, alive := m.standing(cid)
	if _, held := m.claims[cid][member]; !alive || !held {
		m.stats["refused"]++
		return -1
	}
	if at := m.refused(list); at > 0 {
		return at + 1
	}
	m.applyEffects(list)
	m.note(t, "1")
	return 1
}

// refused is the place, from 1, of the first effect that may not be applied, 0 if all may. All are checked
// before the first of them is applied; a number is looked for where an earlier one will have set it.
func (m *model) refused(list []effect) int {
	set := map[string]string{}
	for i, e := range list {
		value := m.effects[e.name]
		if text, ok := set[e.name]; ok && e.verb == "incrby" {
			value = text
		}
		if !e.fits(value) {
			return i + 1
		}
		if e.verb == "set" {
			set[e.name] = e.args[0]
		}
	}
	return 0
}

func (e effect) fits(value any) bool {
	text, isText := value.(string)
	hash, isHash := value.(map[string]string)
	switch e.verb {
	case "absent":
		return value == nil
	case "exists":
		return value != nil
	case "del":
		return true
	case "equals":
		return isText && text == e.args[0]
	case "set":
		return !isHash
	case "incrby":
		_, err := strconv.Atoi(text)
		return !isHash && (!isText || err == nil)
	case "habsent":
		_, there := hash[e.args[0]]
		return !isText && !there
	case "hequals":
		got, there := hash[e.args[0]]
		return there && got == e.args[1]
	}
	return !isText // hset
}

func (m *model) applyEffects(list []effect) {
	for _, e := range list {
		switch e.verb {
		case "set":
			m.effects[e.name] = e.args[0]
		case "del":
			delete(m.effects, e.name)
		case "incrby":
			was, _ := m.effects[e.name].(string)
			old, _ := strconv.Atoi(was)
			add, _ := strconv.Atoi(e.args[0])
			m.effects[e.name] = strconv.Itoa(old + add)
		case "hset":
			hash, _ := m.effects[e.name].(map[string]string)
			hash = maps.Clone(hash)
			if hash == nil {
				hash = map[string]string{}
			}
			hash[e.args[0]] = e.args[1]
			m.effects[e.name] = hash
		}
	}
}

// depth is what the queue says of itself in numbers.
type depth struct {
	envelopes, ready, delayed, suspect, dead, running int
	held, asleep, suspectKeys, halted, dying, claims  int
	oldest                                            int64
	paused                                            bool
	done                                              int
}

func (m *model) depth() depth {
	d := depth{
		envelopes: len(m.messages), ready: len(m.entries()), delayed: len(m.asleepOrDelayed()),
		suspect: len(m.suspects()), dead: len(m.dead), claims: len(m.leases), paused: m.paused, done: len(m.done),
	}
	for _, held := range m.claims {
		d.running += len(held)
	}
	for _, l := range m.locks {
		switch l.owner {
		case asleep:
			d.asleep++
		case suspected:
			d.suspectKeys++
		case halted:
			d.halted++
		case dying:
			d.dying++
		default:
			d.held++
		}
	}
	if first, _, ok := m.entries().first(); ok {
		if key, isKey := entryKey(first); isKey {
			first, _, _ = m.waiting(key).first()
		}
		if known := m.everKnown[first]; known != nil {
			d.oldest = known.seq
		}
	}
	return d
}

// instants are the next times at which something is due or over, the first of each kind.
func (m *model) instants() []int64 {
	first := map[string]int64{}
	note := func(kind string, at int64) {
		if old, ok := first[kind]; at > m.now && (!ok || at < old) {
			first[kind] = at
		}
	}
	for _, due := range m.asleepOrDelayed() {
		note("due", int64(due))
	}
	for _, end := range m.leases {
		note("lease", end)
	}
	for _, end := range m.done {
		note("window", end)
	}
	for _, op := range m.ops {
		note("op", op.at+60_000_000)
	}
	for _, at := range m.dead {
		note("dead", int64(at)+hour)
	}
	for _, at := range m.reaped {
		note("tombstone", at+24*hour)
	}
	return slices.Sorted(maps.Values(first))
}

// live lists the claims that may still settle.
func (m *model) live() []string {
	var cids []string
	for cid, end := range m.leases {
		if end > m.now {
			cids = append(cids, cid)
		}
	}
	slices.Sort(cids)
	return cids
}
