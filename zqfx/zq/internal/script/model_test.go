package script_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// The model is the contract of the scripts as plain Go: maps, slices and a clock of its own. It shares no
// code with the library and keeps no index that follows from something else: that an unlocked key with a
// waiting message is claimable, for one, is worked out when it is asked for. The state machine in
// machine_test.go drives it beside the real thing.
type model struct {
	now, seq int64 // microseconds
	paused   bool
	touched  bool // something was enqueued, so the layout is noted

	messages  map[string]*message // by id
	everKnown map[string]*message // by member, gone ones too

	ready, suspect, delayed, dead zset            // members; keys are in locks
	lanes                         map[string]zset // by key
	claims                        map[string]zset // by cid
	leases, reaped                map[string]int64
	locks                         map[string]lock

	records map[string]record // by field, as are the stories
	stories map[string]story
	done    map[string]int64     // id to the end of its window
	ops     map[string]operation // by session
	stats   map[string]int64
	history map[string]int64
	effects map[string]any // string, or map[string]string for a hash

	since, holds      map[string]int64  // by key: since when it is blocked, since when an operator holds it back
	cancels, progress map[string]string // by field
}

type message struct {
	id, key, member string
	seq             int64
	body            string
}

type lock struct {
	owner          string // a cid, or one of the states below
	claimed, alone int
	due            int64   // of a key that is asleep or dying
	score          float64 // of a key under suspicion: that of its head when it came under it
}

const (
	asleep    = "delayed"
	suspected = "suspect"
	halted    = "halted"
	dying     = "dying"
	held      = "paused"
)

type record struct {
	attempts, losses, replays int
	alone                     bool
	score                     string
	trace, err                string
}

type story struct {
	reason                    string
	attempts, losses, replays int
	score                     string
	trace, err                string
}

// operation is the last call of a session, or a call of its own.
type operation struct {
	number  int
	outcome string
	at      int64
}

// token names a call: the zero value not at all, number 0 by its session alone.
type token struct {
	session string
	number  int
}

func (t token) String() string {
	if t.number == 0 {
		return t.session
	}
	return fmt.Sprintf("%s:%d", t.session, t.number)
}

// zset is a sorted set of Redis: by score, then by the bytes of the member.
type zset map[string]float64

func (z zset) sorted() []string {
	return slices.SortedFunc(maps.Keys(z), func(a, b string) int {
		return cmp.Or(cmp.Compare(z[a], z[b]), cmp.Compare(a, b))
	})
}

// upTo are the first members with a score of at most limit, and of them at most n.
func (z zset) upTo(limit float64, n int) []string {
	var list []string
	for _, m := range z.sorted() {
		if len(list) < n && z[m] <= limit {
			list = append(list, m)
		}
	}
	return list
}

func (z zset) first() (string, float64, bool) {
	if len(z) == 0 {
		return "", 0, false
	}
	m := z.sorted()[0]
	return m, z[m], true
}

func newModel(now int64) *model {
	return &model{
		now: now, messages: map[string]*message{}, everKnown: map[string]*message{},
		ready: zset{}, suspect: zset{}, delayed: zset{}, dead: zset{},
		lanes: map[string]zset{}, claims: map[string]zset{}, leases: map[string]int64{}, reaped: map[string]int64{},
		locks: map[string]lock{}, records: map[string]record{}, stories: map[string]story{}, done: map[string]int64{},
		ops: map[string]operation{}, stats: map[string]int64{}, effects: map[string]any{}, history: map[string]int64{},
		since: map[string]int64{}, holds: map[string]int64{}, cancels: map[string]string{}, progress: map[string]string{},
	}
}

// keyOf is the ordering key of a member, "" for a plain one.
func (m *model) keyOf(member string) string {
	if known := m.everKnown[member]; known != nil {
		return known.key
	}
	return ""
}

// field names a member in records and stories. A plain member cannot be taken for an id.
func (m *model) field(member string) string {
	if known := m.everKnown[member]; known != nil {
		return known.id
	}
	return "\x02" + member
}

func (m *model) plain(member string) bool { return m.everKnown[member] == nil }

func (m *model) record(member string) record { return m.records[m.field(member)] }

// scoreOf is the score that a delayed member has when it is due: as it was given, else its sequence.
func (m *model) scoreOf(member string, r record) float64 {
	if r.score == "" {
		if m.plain(member) { // it was there twice, and the other one took the record along
			return 0
		}
		return float64(m.everKnown[member].seq)
	}
	score, err := strconv.ParseFloat(r.score, 64)
	if err != nil {
		panic(err)
	}
	return score
}

// nextSequence is unique and grows, whatever the clock does.
func (m *model) nextSequence() int64 { return max(m.now, m.seq+1) }

func (m *model) waiting(key string) zset {
	if m.lanes[key] == nil {
		m.lanes[key] = zset{}
	}
	return m.lanes[key]
}

// entries are what may be claimed in the ordinary way: messages without a key, and each key that nobody
// holds while something waits in its lane, at the score of its head.
func (m *model) entries() zset {
	all := maps.Clone(m.ready)
	for key, lane := range m.lanes {
		if _, score, ok := lane.first(); ok && m.locks[key].owner == "" {
			all["\x00"+key] = score
		}
	}
	return all
}

// asleepOrDelayed is what has an instant to wait for: messages, and keys that sleep or die.
func (m *model) asleepOrDelayed() zset {
	all := maps.Clone(m.delayed)
	for key, l := range m.locks {
		if l.owner == asleep || l.owner == dying {
			all["\x00"+key] = float64(l.due)
		}
	}
	return all
}

// suspects are messages without a key, and keys, that are served alone.
func (m *model) suspects() zset {
	all := maps.Clone(m.suspect)
	for key, l := range m.locks {
		if l.owner == suspected {
			all["\x00"+key] = l.score
		}
	}
	return all
}

// release frees a key. It is claimable again if something waits; alone says how many of what waits are to be
// claimed alone, and a head that has killed a worker is so in any case.
func (m *model) release(key string, alone int) {
	if m.holds[key] != 0 {
		m.block(key, lock{owner: held, alone: alone})
		return
	}
	head, score, ok := m.waiting(key).first()
	if ok && m.record(head).losses > 0 {
		alone = max(alone, 1)
	}
	if ok && alone > 0 {
		m.block(key, lock{owner: suspected, alone: alone, score: score})
		return
	}
	delete(m.locks, key)
	delete(m.since, key)
}

// block notes what keeps a key from going on, and since when.
func (m *model) block(key string, l lock) {
	m.locks[key] = l
	if m.since[key] == 0 {
		m.since[key] = m.now
	}
}

// count adds one to a total that has a history.
func (m *model) count(name string) {
	m.stats[name]++
	minute := m.now / 60_000_000
	m.history[fmt.Sprintf("%d %d%s", minute/60, minute%60, name[:1])]++
}

// forget drops all that is kept of a message that is over.
func (m *model) forget(field string) {
	delete(m.messages, field)
	delete(m.records, field)
	delete(m.progress, field)
	delete(m.cancels, field)
}

func (m *model) bury(member string, score float64, r record, reason, err string) {
	m.dead[member] = float64(m.now)
	m.stories[m.field(member)] = story{
		reason: reason, attempts: r.attempts, losses: r.losses, replays: r.replays, score: number(score), trace: r.trace, err: err,
	}
	delete(m.records, m.field(member))
	m.stats["dead"]++
}

// afterDeath is what the policy says of a key whose message died.
func (m *model) afterDeath(key, policy string, alone int) {
	switch policy {
	case "halt":
		m.block(key, lock{owner: halted})
	case "key":
		m.block(key, lock{owner: dying, due: m.now})
	default:
		m.release(key, alone)
	}
}

// trim drops the dead letters that are older than keep, or else the oldest above most; twenty a call.
func (m *model) trim(keep int64, most int) {
	gone := m.dead.upTo(float64(m.now-keep)-1, 20)
	if len(gone) == 0 {
		gone = m.dead.sorted()[:min(max(len(m.dead)-most, 0), 20)]
	}
	for _, member := range gone {
		m.purge(member)
	}
}

func (m *model) purge(member string) {
	delete(m.dead, member)
	delete(m.stories, m.field(member))
	m.forget(m.field(member))
	if !m.plain(member) {
		m.stats["purged"]++
	}
}

// asked tells whether this very call was made before, or its session has made a later one.
func (m *model) asked(t token) (op operation, again, late bool) {
	op, there := m.ops[t.session]
	if t.session == "" || !there {
		return op, false, false
	}
	number := max(t.number, 1)
	return op, op.number == number, op.number > number
}

// note keeps the outcome of a session's last call, and forgets up to four that are a minute old.
func (m *model) note(t token, outcome string) {
	if t.session == "" {
		return
	}
	m.ops[t.session] = operation{max(t.number, 1), outcome, m.now}
	m.forgetOps(4)
}

func (m *model) forgetOps(most int) {
	at := zset{}
	for session, op := range m.ops {
		at[session] = float64(op.at)
	}
	for _, session := range at.upTo(float64(m.now-60_000_000), most) {
		delete(m.ops, session)
	}
}

func (m *model) forgetDone() {
	maps.DeleteFunc(m.done, func(_ string, end int64) bool { return end <= m.now })
}

// number writes a score as Redis does: 17 digits, so that it reads back as the same.
func number(score float64) string { return strconv.FormatFloat(score, 'g', 17, 64) }

func (l lock) String() string { return fmt.Sprintf("%s|%d|%d", l.owner, l.claimed, l.alone) }
