package integration_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zqueue/zqueue/middleware/idempotency"
)

const (
	madeMessages = 60
	madeKeys     = 6
)

// madeUp is the chronicle of an application that keeps every promise: the first process is cut off in the first
// message, the second one does the rest. The order of m-00040 is that of m-00034.
func madeUp() *chronicle {
	c := &chronicle{
		queue: "q", seed: goodSeed(), payments: map[int]int64{}, records: map[int]idempotency.Record{}, dead: map[string]string{},
	}
	m := &maker{c: c, at: time.UnixMicro(1_700_000_000_000_000), worker: "first"}
	for n := range madeMessages {
		s := sentOrder{
			ID: fmt.Sprintf("m-%05d", n), Key: fmt.Sprint("k", n%madeKeys), Order: n, Seq: int64(n + 1),
			Span: fmt.Sprint("made-", n), At: m.tick(),
		}
		if n == 40 {
			s.Order = 34
		}
		c.sent = append(c.sent, s)
	}
	m.run(c.sent[0], 1, sawReleased)
	m.consumed()
	m.worker = "second"
	for _, s := range c.sent {
		m.message(s)
	}
	m.consumed()
	return c
}

// goodSeed is one with whose lots the made-up messages see enough: m-00007 fails first, m-00034 and others do not,
// and one dies at once.
func goodSeed() uint64 {
	for seed := uint64(1); ; seed++ {
		dead := slices.ContainsFunc(numbers(12, 30), func(n int) bool { return lotOf(seed, n) == orderLot{dies: "refused"} })
		alive := func(n int) bool { return lotOf(seed, n).dies == "" }
		plain := func(n int) bool { return lotOf(seed, n) == orderLot{} }
		if dead && lotOf(seed, 7) == (orderLot{failures: 1}) && plain(1) && plain(0) && plain(34) && alive(13) && plain(6) {
			return seed
		}
	}
}

func numbers(from, to int) []int {
	var all []int
	for n := from; n < to; n++ {
		all = append(all, n)
	}
	return all
}

// maker writes entries as a process of the application would.
type maker struct {
	c      *chronicle
	at     time.Time
	worker string
	runs   int
	before map[string]string // the last run's span, by message
	spans  int64
}

func (m *maker) tick() time.Time {
	m.at = m.at.Add(time.Millisecond)
	return m.at
}

func (m *maker) write(e entry) {
	e.At, e.Worker = m.tick(), m.worker
	m.c.entries = append(m.c.entries, e)
}

func (m *maker) consumed() {
	m.write(entry{Saw: sawConsumed, Count: m.spans})
	m.spans = 0
}

// message lets a message run as its lot has it.
func (m *maker) message(s sentOrder) {
	lot := lotOf(m.c.seed, s.Order)
	if m.c.records[s.Order].State == idempotency.StateDone {
		m.run(s, 1, sawSkipped)
		return
	}
	for attempt := 1; attempt < lot.last(); attempt++ {
		m.run(s, attempt, sawFailed)
	}
	if lot.dies != "" {
		m.run(s, lot.last(), sawDead)
		m.c.dead[s.ID] = lot.dies
		m.c.records[s.Order] = idempotency.Record{State: idempotency.StateFailed}
		return
	}
	m.run(s, lot.last(), sawPaid)
}

// run writes one run, which ends so.
func (m *maker) run(s sentOrder, attempt int, end string) {
	m.runs++
	m.spans++
	e := entry{
		ID: s.ID, Key: s.Key, Order: s.Order, Attempt: attempt,
		Trace: fmt.Sprint("trace-", m.runs), Span: fmt.Sprint("run-", m.runs),
	}
	for _, saw := range []string{sawStart, end} {
		if saw != sawStart || end != sawSkipped {
			e.Saw = saw
			m.write(e)
		}
	}
	if end == sawPaid {
		m.c.payments[s.Order]++
		m.c.records[s.Order] = idempotency.Record{
			State: idempotency.StateDone, Owner: idempotency.Owner{Message: fmt.Sprintf("q/%s#%d", s.ID, s.Seq)},
		}
		e.Saw = sawMarked
		m.write(e)
	}
	if m.before == nil {
		m.before = map[string]string{}
	}
	span := entry{
		Saw: sawSpan, ID: e.ID, Attempt: attempt, Trace: e.Trace, Span: e.Span, From: s.Span, Before: m.before[s.ID],
		Failed: end == sawFailed || end == sawDead,
	}
	if end == sawSkipped {
		span.Outcome = sawSkipped
	}
	m.before[s.ID] = e.Span
	m.write(span)
}

// one is the only entry of a message of the second process that saw this.
func (c *chronicle) one(id, saw string) *entry {
	for i := range c.entries {
		if e := &c.entries[i]; e.ID == id && e.Saw == saw && e.Worker == "second" {
			return e
		}
	}
	panic("no " + saw + " of " + id)
}

func (c *chronicle) drop(which func(entry) bool) { c.entries = slices.DeleteFunc(c.entries, which) }

func (c *chronicle) dropOne(id, saw string) {
	e := *c.one(id, saw)
	c.drop(func(o entry) bool { return o == e })
}

// again lets a message run once more at the end, as a run that the counters know of.
func (c *chronicle) again(n, attempt int, end string) {
	c.sort()
	m := &maker{c: c, at: c.entries[len(c.entries)-1].At, worker: "second", runs: 1000, spans: c.one("", sawConsumed).Count}
	c.dropOne("", sawConsumed)
	last := ""
	for _, e := range c.entries {
		if e.ID == c.sent[n].ID && e.Saw == sawSpan {
			last = e.Span
		}
	}
	m.before = map[string]string{c.sent[n].ID: last}
	m.run(c.sent[n], attempt, end)
	m.consumed()
}

// move shifts all entries of a message in time.
func (c *chronicle) move(id string, by time.Duration) {
	for i := range c.entries {
		if c.entries[i].ID == id && c.entries[i].Worker == "second" {
			c.entries[i].At = c.entries[i].At.Add(by)
		}
	}
}

// A checker that finds nothing wrong may be blind: each damage to a history is named.
func TestAppCheckerNamesEachDamage(t *testing.T) {
	t.Parallel()
	if faults := madeUp().check(); len(faults) > 0 {
		t.Fatalf("a good history: %q", faults)
	}
	for name, d := range appDamages() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := madeUp()
			d.do(c)
			faults := c.check()
			for _, want := range d.want {
				if !slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, want) }) {
					t.Errorf("%q is not in\n%s", want, strings.Join(faults, "\n"))
				}
			}
		})
	}
}

type appDamage struct {
	do   func(c *chronicle)
	want []string // parts of what is to be told
}

// appDamages damage the made-up history, each in one way.
func appDamages() map[string]appDamage {
	const plain, failsFirst = "m-00001", "m-00007"
	all := map[string]appDamage{
		"lost": {
			func(c *chronicle) { c.drop(func(e entry) bool { return e.ID == plain }) },
			[]string{"done: m-00001 has no outcome", "attempts: m-00001 never ran", "once: order 1 was paid 1 times, by 0 runs"},
		},
		"lost after a failure": {
			func(c *chronicle) { c.drop(func(e entry) bool { return e.ID == failsFirst && e.Attempt == 2 }) },
			[]string{"done: m-00007 has no outcome; it was last failed", `attempts: m-00007 ended as "failed"`},
		},
		"cut off": {
			func(c *chronicle) { c.dropOne(plain, sawPaid) },
			[]string{"attempts: m-00001, run 1 has no end", "done: m-00001"},
		},
		"of nobody": {
			func(c *chronicle) { c.entries = append(c.entries, entry{Saw: sawPaid, ID: "x", At: c.entries[0].At}) },
			[]string{`done: paid of "x", which nobody sent`},
		},
		"doubled run": {
			func(c *chronicle) { c.again(1, 1, sawPaid) },
			[]string{
				"attempts: m-00001 ran as attempt 1, its run 2; allowed was []", "m-00001 paid, and so did m-00001 after it",
				"m-00001 ran after it was marked as done",
			},
		},
		"doubled order": {
			func(c *chronicle) {
				c.drop(func(e entry) bool { return e.ID == "m-00040" })
				c.again(40, 1, sawPaid)
			},
			[]string{"order 34: m-00034 paid, and so did m-00040 after it", "m-00040 ran after it was marked as done"},
		},
		"doubled payment": {func(c *chronicle) { c.payments[1]++ }, []string{"once: order 1 was paid 2 times, by 1 runs"}},
		"lost payment":    {func(c *chronicle) { c.payments[1] = 0 }, []string{"once: order 1 was paid 0 times, by 1 runs"}},
		"sent twice":      {func(c *chronicle) { c.sent = append(c.sent, c.sent[3]) }, []string{"sent: m-00003 twice"}},
		"reordered": {
			func(c *chronicle) {
				c.move("m-00013", c.one(failsFirst, sawStart).At.Add(-time.Microsecond).Sub(c.one("m-00013", sawStart).At))
			},
			[]string{
				"order: key k1: m-00013 started", "while m-00007, which goes before it, was waiting",
				"completion: key k1: m-00013 was over before m-00007",
			},
		},
		"overlapping": {
			func(c *chronicle) {
				c.one("m-00006", sawStart).At = c.one("m-00000", sawStart).At.Add(time.Microsecond)
			},
			[]string{"one-holder: key k0: m-00006 started", "was running", "order: key k0: m-00006 started"},
		},
		"completed late": {
			func(c *chronicle) { c.one(plain, sawPaid).At = c.entries[len(c.entries)-1].At },
			[]string{"completion: key k1: m-00007 was over before m-00001"},
		},
		"attempt left out": {
			func(c *chronicle) { c.renumber(failsFirst, 2, 3) },
			[]string{"attempts: m-00007 ran as attempt 3, its run 2; allowed was [2]", "ended in attempt 3, its lot was 2"},
		},
		"attempt not charged": {
			func(c *chronicle) { c.renumber(failsFirst, 2, 1) },
			[]string{"attempts: m-00007 ran as attempt 1, its run 2; allowed was [2]"},
		},
		"release charged": {
			func(c *chronicle) { c.renumber("m-00000", 1, 2) }, []string{"m-00000 ran as attempt 2"},
		},
	}
	maps.Copy(all, storeDamages(plain))
	maps.Copy(all, spanDamages(plain, failsFirst))
	return all
}

// renumber changes an attempt's number wherever the second process names it.
func (c *chronicle) renumber(id string, from, to int) {
	for i := range c.entries {
		if e := &c.entries[i]; e.ID == id && e.Attempt == from && e.Worker == "second" {
			e.Attempt = to
		}
	}
}

func (c *chronicle) sort() {
	slices.SortStableFunc(c.entries, func(a, b entry) int { return a.At.Compare(b.At) })
}
