package script_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/internal/keys"
	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// virtualClock reads the time from a key of the queue's own tag, so that a test moves it and nothing waits.
const virtualClock = `
local function clock()
  return tonumber(redis.call('GET', string.match(KEYS[1], '^zq:{[^}]*}:') .. clockKey))
end
`

const clockKey = "test-clock"

func virtualClockText() string { return strings.ReplaceAll(virtualClock, "clockKey", "'"+clockKey+"'") }

// mutantDir names a directory whose scripts are tested in place of the built-in ones: see integration/mutants.
const mutantDir = "ZQ_TEST_SCRIPTS"

func virtualSet() *script.Set {
	clock := virtualClockText()
	if dir := os.Getenv(mutantDir); dir != "" {
		return script.FromDir(dir, clock)
	}
	return script.WithClock(clock)
}

// store is one queue in a Redis, with its scripts and a clock that the test sets.
type store struct {
	ctx   context.Context //nolint:containedctx // one test's, for short calls
	rdb   *redis.Client
	run   script.Run // what the scripts go through: rdb, unless a test listens in
	set   *script.Set
	names keys.Keys
	clock string
}

func newStore(ctx context.Context, rdb *redis.Client, set *script.Set, queue string) *store {
	return &store{
		ctx: ctx, rdb: rdb, run: rdb, set: set, names: keys.New(queue, 0), clock: "zq:{" + queue + "}:" + clockKey,
	}
}

// through is the same queue with its scripts sent another way.
func (s *store) through(run script.Run) *store {
	other := *s
	other.run = run
	return &other
}

// withClient is the same queue through another client.
func (s *store) withClient(rdb *redis.Client) *store {
	other := s.through(rdb)
	other.rdb = rdb
	return other
}

func (s *store) setTime(micros int64) error { return s.rdb.Set(s.ctx, s.clock, micros, 0).Err() }

// view is everything that a queue holds, in a form in which the model and Redis can be compared.
type view struct {
	Ready, Delayed, Suspect, Dead zset
	Lanes, Claims                 map[string]zset
	Leases, Reaped, Done, OpsAt   zset

	Locks, Envelopes, Ops map[string]string
	Records               map[string]script.Record
	Stories               map[string]script.Story
	Stats                 map[string]int64
	History               map[string]int64 // by hour and field
	Effects               map[string]any
	Since, Holds          map[string]string // by key
	Cancels, Progress     map[string]string // by field
	Seq                   int64
	Layout, Paused        bool
	Strange               []string // keys that no queue has
}

func (m *model) view() view {
	v := view{
		Ready: m.entries(), Delayed: m.asleepOrDelayed(), Suspect: m.suspects(), Dead: m.dead,
		Lanes: map[string]zset{}, Claims: m.claims, Leases: zset{}, Reaped: zset{}, Done: zset{}, OpsAt: zset{},
		Locks: map[string]string{}, Envelopes: map[string]string{}, Ops: map[string]string{},
		Records: map[string]script.Record{}, Stories: map[string]script.Story{},
		Since: texts(m.since), Holds: texts(m.holds), Cancels: m.cancels, Progress: m.progress, History: m.history,
		Stats: m.stats, Effects: m.effects, Seq: m.seq, Layout: m.touched, Paused: m.paused,
	}
	for key, lane := range m.lanes {
		if len(lane) > 0 {
			v.Lanes[key] = lane
		}
	}
	for cid, end := range m.leases {
		v.Leases[cid] = float64(end)
	}
	for cid, at := range m.reaped {
		v.Reaped[cid] = float64(at)
	}
	for id, end := range m.done {
		v.Done[id] = float64(end)
	}
	for session, op := range m.ops {
		v.OpsAt[session], v.Ops[session] = float64(op.at), fmt.Sprintf("%d|%s", op.number, op.outcome)
	}
	for key, l := range m.locks {
		v.Locks[key] = l.String()
	}
	for id, msg := range m.messages {
		v.Envelopes[id] = msg.body
	}
	for field, r := range m.records {
		v.Records[field] = script.Record{
			Attempts: r.attempts, Losses: r.losses, Alone: r.alone, Replays: r.replays, Score: r.score,
			Trace: r.trace, Error: r.err,
		}
	}
	for field, s := range m.stories {
		v.Stories[field] = script.Story{
			Reason: s.reason, Attempts: s.attempts, Losses: s.losses, Replays: s.replays, Score: s.score,
			Trace: s.trace, Error: s.err,
		}
	}
	return v
}

// meaning drops from the records what says nothing: a score tells where a message goes when its delay is over,
// and otherwise it is in the set that the message is in.
func (v view) meaning(field func(member string) string) view {
	delayed := map[string]bool{}
	for member := range v.Delayed {
		delayed[field(member)] = true
	}
	records := map[string]script.Record{}
	for name, r := range v.Records {
		if !delayed[name] {
			r.Score = ""
		}
		if r != (script.Record{}) {
			records[name] = r
		}
	}
	v.Records = records
	return v
}

// reader collects the parts of a view from one pipeline.
type reader struct {
	ctx  context.Context //nolint:containedctx // one call's
	pipe redis.Pipeliner
	then []func()
}

func (r *reader) zset(key string, to func(zset)) {
	cmd := r.pipe.ZRangeWithScores(r.ctx, key, 0, -1)
	r.then = append(r.then, func() {
		z := zset{}
		for _, one := range cmd.Val() {
			z[fmt.Sprint(one.Member)] = one.Score
		}
		to(z)
	})
}

func (r *reader) hash(key string, to func(map[string]string)) {
	cmd := r.pipe.HGetAll(r.ctx, key)
	r.then = append(r.then, func() { to(cmd.Val()) })
}

// read takes the view from Redis. all lists every key of the queue, so that nothing lies about unseen.
func (s *store) read() (view, error) {
	v := view{
		Lanes: map[string]zset{}, Claims: map[string]zset{}, Records: map[string]script.Record{},
		Stories: map[string]script.Story{}, Stats: map[string]int64{}, Effects: map[string]any{},
		History: map[string]int64{},
	}
	all, err := s.rdb.Keys(s.ctx, strings.TrimSuffix(s.clock, clockKey)+"*").Result()
	if err != nil {
		return v, err
	}
	k, r := s.names, &reader{ctx: s.ctx, pipe: s.rdb.Pipeline()}
	for key, to := range map[string]*zset{
		k.Ready: &v.Ready, k.Delayed: &v.Delayed, k.Suspect: &v.Suspect, k.Dead: &v.Dead, k.Leases: &v.Leases,
		k.Reaped: &v.Reaped, k.Done: &v.Done, k.OpsAt: &v.OpsAt,
	} {
		r.zset(key, func(z zset) { *to = z })
	}
	r.hash(k.Locks, func(h map[string]string) { v.Locks = h })
	r.hash(k.Msg, func(h map[string]string) { v.Envelopes = h })
	r.hash(k.Since, func(h map[string]string) { v.Since = h })
	r.hash(k.Holds, func(h map[string]string) { v.Holds = h })
	r.hash(k.Cancels, func(h map[string]string) { v.Cancels = h })
	r.hash(k.Progress, func(h map[string]string) { v.Progress = h })
	r.hash(k.Ops, func(h map[string]string) { v.Ops = h })
	r.hash(k.Retry, v.readRecords)
	r.hash(k.DeadInfo, v.readStories)
	r.hash(k.Stats, func(h map[string]string) {
		for name, n := range h {
			if integer(n) != 0 { // a counter of nothing is none
				v.Stats[name] = integer(n)
			}
		}
	})
	r.hash(k.Meta, func(h map[string]string) {
		v.Seq, v.Layout, v.Paused = integer(h["seq"]), h["layout"] == "1", h["paused"] == "1"
	})
	for _, key := range all {
		s.readNamed(r, &v, key)
	}
	_, err = r.pipe.Exec(s.ctx)
	for _, f := range r.then {
		f()
	}
	return v, err
}

// readNamed reads a key whose name is not fixed. Effects on h… are hashes, on n… strings, and the rest is
// taken as Redis would save it.
func (s *store) readNamed(r *reader, v *view, key string) {
	if name, ok := strings.CutPrefix(key, s.names.LanePrefix); ok {
		r.zset(key, func(z zset) { v.Lanes[name] = z })
	} else if name, ok := strings.CutPrefix(key, s.names.ClaimPrefix); ok {
		r.zset(key, func(z zset) { v.Claims[name] = z })
	} else if hour, ok := strings.CutPrefix(key, s.names.HistoryPrefix); ok {
		r.hash(key, func(h map[string]string) {
			for field, n := range h {
				if integer(n) != 0 {
					v.History[hour+" "+field] = integer(n)
				}
			}
		})
	} else if name, ok := strings.CutPrefix(key, s.names.EffectPrefix); ok && strings.HasPrefix(name, "h") {
		r.hash(key, func(h map[string]string) { v.Effects[name] = h })
	} else if ok && strings.HasPrefix(name, "n") {
		cmd := r.pipe.Get(r.ctx, key)
		r.then = append(r.then, func() { v.Effects[name] = cmd.Val() })
	} else if ok {
		cmd := r.pipe.Dump(r.ctx, key)
		r.then = append(r.then, func() { v.Effects[name] = cmd.Val() })
	} else if !slices.Contains(s.fixed(), key) {
		v.Strange = append(v.Strange, key)
	}
}

func (s *store) fixed() []string {
	k := s.names
	return []string{
		s.clock, k.Ready, k.Locks, k.Delayed, k.Leases, k.Msg, k.Retry, k.Suspect, k.Dead, k.DeadInfo, k.Done, k.Reaped,
		k.Ops, k.OpsAt, k.Wake, k.Meta, k.Stats, k.Holds, k.Since, k.Cancels, k.Progress, k.Workers, k.WorkersAt,
	}
}

func (v *view) readRecords(h map[string]string) {
	for field, raw := range h {
		rec := script.ReadRecord(raw)
		rec.Score = canonical(rec.Score)
		v.Records[field] = rec
	}
}

func (v *view) readStories(h map[string]string) {
	for field, raw := range h {
		st := script.ReadStory(raw)
		st.Score = canonical(st.Score)
		v.Stories[field] = st
	}
}

// canonical writes a score in the one way that the model writes it.
func canonical(score string) string {
	if f, err := strconv.ParseFloat(score, 64); err == nil {
		return number(f)
	}
	return score
}

func texts(m map[string]int64) map[string]string {
	out := map[string]string{}
	for name, n := range m {
		out[name] = strconv.FormatInt(n, 10)
	}
	return out
}

func integer(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
