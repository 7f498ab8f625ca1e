package integration_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zqueue/zqueue/middleware/idempotency"
)

// storeDamages are to marks, records and dead letters.
func storeDamages(plain string) map[string]appDamage {
	return map[string]appDamage{
		"unmarked": {func(c *chronicle) { c.dropOne(plain, sawMarked) }, []string{"once: order 1: m-00001 paid without a mark"}},
		"record gone": {
			func(c *chronicle) { delete(c.records, 1) }, []string{`once: order 1 is recorded as "" by ""`},
		},
		"still running": {
			func(c *chronicle) { c.records[1] = idempotency.Record{State: idempotency.StateRunning} },
			[]string{`once: order 1 is recorded as "running"`},
		},
		"record of another": {
			func(c *chronicle) { c.records[1] = c.records[13] }, []string{`once: order 1 is recorded as "done" by "q/m-00013#14"`},
		},
		"store out of reach": {
			func(c *chronicle) { c.one("m-00040", sawSkipped).Saw = "idempotency: unavailable" },
			[]string{"once: m-00040, idempotency: unavailable", "done: m-00040 has no outcome"},
		},
		"died of nothing": {
			func(c *chronicle) { c.dead[plain] = "refused" }, []string{`dead: m-00001 died of "refused", its lot was ""`},
		},
		"strange letter": {func(c *chronicle) { c.dead["x"] = "refused" }, []string{"dead: x, which nobody sent"}},
		"did not die":    {func(c *chronicle) { delete(c.dead, c.mortal()) }, []string{`died of "", its lot was "refused"`}},
		"died of another": {
			func(c *chronicle) { c.dead[c.mortal()] = "attempts" }, []string{`died of "attempts", its lot was "refused"`},
		},
		"paid by the dead": {func(c *chronicle) { c.payments[c.numberOf(c.mortal())] = 1 }, []string{"was to die: paid 1 times"}},
	}
}

// mortal is a message that dies at once.
func (c *chronicle) mortal() string {
	for _, s := range c.sent {
		if (lotOf(c.seed, s.Order) == orderLot{dies: "refused"}) {
			return s.ID
		}
	}
	panic("nobody dies")
}

func (c *chronicle) numberOf(id string) int {
	return c.sent[slices.IndexFunc(c.sent, func(s sentOrder) bool { return s.ID == id })].Order
}

// spanDamages are to spans.
func spanDamages(plain, failsFirst string) map[string]appDamage {
	change := func(id string, do func(s *entry)) func(*chronicle) {
		return func(c *chronicle) { do(c.one(id, sawSpan)) }
	}
	const differs = "span: attempt 1 of m-00001 has"
	return map[string]appDamage{
		"span missing": {
			func(c *chronicle) { c.dropOne(plain, sawSpan) }, []string{"span: m-00001 attempt 1 has 0 spans", "span: second made"},
		},
		"span of a skip missing": {
			func(c *chronicle) { c.dropOne("m-00040", sawSpan) }, []string{"span: m-00040 attempt 1 has 0 spans"},
		},
		"span twice": {
			func(c *chronicle) { c.entries = append(c.entries, *c.one(plain, sawSpan)) },
			[]string{"span: m-00001 attempt 1 has 2 spans"},
		},
		"span of no run": {
			func(c *chronicle) {
				s := *c.one(plain, sawSpan)
				s.Span, s.Trace = "other", "other"
				c.entries = append(c.entries, s)
			}, []string{"span: of no run"},
		},
		"no span active": {
			func(c *chronicle) { c.one(plain, sawStart).Span = "0" },
			[]string{"span: m-00001 attempt 1 has 0 spans", "span: of no run"},
		},
		"another attempt": {change(plain, func(s *entry) { s.Attempt = 2 }), []string{differs}},
		"another message": {change(plain, func(s *entry) { s.ID = "m-00002" }), []string{differs}},
		"another trace":   {change(plain, func(s *entry) { s.Trace = "other" }), []string{differs}},
		"a trace for two": {
			change(plain, func(s *entry) { s.Trace = "trace-1" }), []string{"span: 2 runs in the trace trace-1"},
		},
		"a parent":             {change(plain, func(s *entry) { s.Parent = true }), []string{differs}},
		"failed without cause": {change(plain, func(s *entry) { s.Failed = true }), []string{differs}},
		"a failure hidden": {
			change(failsFirst, func(s *entry) { s.Failed = false }), []string{"span: attempt 1 of m-00007 has"},
		},
		"not from its sender": {change(plain, func(s *entry) { s.From = "" }), []string{differs}},
		"not after its last run": {
			func(c *chronicle) {
				for i := range c.entries {
					if e := &c.entries[i]; e.ID == failsFirst && e.Saw == sawSpan {
						e.Before = ""
					}
				}
			}, []string{"span: attempt 2 of m-00007 has"},
		},
		"a skip that failed":  {change("m-00040", func(s *entry) { s.Failed = true }), []string{"span: the skip of m-00040 has"}},
		"a skip without word": {change("m-00040", func(s *entry) { s.Outcome = "" }), []string{"span: the skip of m-00040 has"}},
		"counted otherwise":   {func(c *chronicle) { c.one("", sawConsumed).Count++ }, []string{"span: second made"}},
	}
}

// What a killed worker leaves behind is forgiven, and no more than that.
func TestAppCheckerForgivesAKillAlone(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]struct {
		leaves  []string // of the first message's run by the worker that is killed
		payment int64
		want    string
	}{
		"killed at the start":      {[]string{sawStart}, 0, ""},
		"killed with the payment":  {[]string{sawStart}, 1, ""},
		"killed after the end":     {[]string{sawStart, sawPaid}, 1, ""},
		"killed before the record": {[]string{sawStart, sawPaid, sawSpan}, 1, ""},
		"paid twice for one loss":  {[]string{sawStart}, 2, "was paid 3 times, by 1 runs and 1 lost ones"},
		"killed after the mark":    {[]string{sawStart, sawPaid, sawMarked}, 1, "m-00000 ran after it was marked as done"},
		"marked, and paid again":   {[]string{sawStart, sawPaid, sawMarked}, 1, "m-00000 paid, and so did m-00000 after it"},
	} {
		c := madeUp()
		at := c.entries[0].At
		var run []entry
		for _, saw := range d.leaves {
			e := *c.one("m-00000", saw)
			at = at.Add(time.Microsecond)
			e.At, e.Worker, e.Span, e.Trace, e.Before = at, "first", "lost", "lost", ""
			run = append(run, e)
		}
		c.drop(func(e entry) bool { return e.Worker == "first" })
		c.one("m-00000", sawSpan).Before = ""
		c.entries = append(run, c.entries...)
		c.payments[0] += d.payment
		c.victim, c.victimAt = "first", at.Add(time.Microsecond)
		faults := c.check()
		found := slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, d.want) })
		if d.want == "" && len(faults) > 0 || d.want != "" && !found {
			t.Errorf("%s: %q is not what is told:\n%s", name, d.want, strings.Join(faults, "\n"))
		}
		if c.victim = ""; len(c.check()) == 0 {
			t.Errorf("%s: nothing is wrong without a kill", name)
		}
	}
}
