package integration_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zqueue/zqueue/middleware/idempotency"
)

// runFaults compares the runs of a message with its lot: attempts count from 1 without a gap, and none is repeated
// but for one that a shutdown or a kill has cut off.
func (c *chronicle) runFaults(st *story) []string {
	var faults []string
	fault := func(format string, args ...any) {
		faults = append(faults, "attempts: "+st.ID+fmt.Sprintf(format, args...))
	}
	lot := lotOf(c.seed, st.Order)
	touched := false
	for i, r := range st.runs {
		allowed := []int{1}
		if i > 0 {
			allowed = c.next(st.runs[i-1])
		}
		if !slices.Contains(allowed, r.start.Attempt) {
			fault(" ran as attempt %d, its run %d; allowed was %v", r.start.Attempt, i+1, allowed)
		}
		killed := r.start.Worker == c.victim
		touched = touched || killed
		if r.end.Saw == "" && !killed {
			fault(", run %d has no end", i+1)
		}
	}
	skippedCopy := len(st.runs) == 0 && len(st.skips) > 0
	switch n := len(st.runs); {
	case len(st.skips) > 1 && c.victim == "":
		fault(" was skipped %d times", len(st.skips))
	case lot.dies == "" && (skippedCopy || touched && len(st.skips) > 0): // a message of its order had paid
	case n == 0:
		fault(" never ran")
	case lot.dies == "" && st.runs[n-1].end.Saw != sawPaid, lot.dies != "" && st.runs[n-1].end.Saw != sawDead:
		fault(" ended as %q", st.runs[n-1].end.Saw)
	case st.runs[n-1].start.Attempt != lot.last() && !touched:
		fault(" ended in attempt %d, its lot was %d", st.runs[n-1].start.Attempt, lot.last())
	}
	return faults
}

// next are the attempt numbers that may follow a run. What a killed worker has not recorded is not charged.
func (c *chronicle) next(r appRun) []int {
	n, killed := r.start.Attempt, r.start.Worker == c.victim
	switch {
	case r.end.Saw == sawReleased:
		return []int{n}
	case killed && (r.end.Saw == sawFailed || r.end.Saw == ""):
		return []int{n, n + 1}
	case killed:
		return []int{n}
	case r.end.Saw == sawFailed:
		return []int{n + 1}
	}
	return nil
}

// bill is what happened to one order, over all of its messages.
type bill struct {
	paid, lost []appRun
	marks      []entry
	starts     []entry
}

func (c *chronicle) bills(all []*story) map[int]*bill {
	bills := map[int]*bill{}
	of := func(number int) *bill {
		if bills[number] == nil {
			bills[number] = &bill{}
		}
		return bills[number]
	}
	for _, st := range all {
		b := of(st.Order)
		for _, r := range st.runs {
			b.starts = append(b.starts, r.start)
			switch r.end.Saw {
			case sawPaid:
				b.paid = append(b.paid, r)
			case "":
				b.lost = append(b.lost, r)
			}
		}
	}
	for _, e := range c.entries {
		if e.Saw == sawMarked {
			of(e.Order).marks = append(of(e.Order).marks, e)
		}
	}
	return bills
}

// onceFaults finds orders that were paid for twice, or not, or are not recorded as they should be. A killed worker
// may have paid without a record; then, and only then, a payment is repeated.
func (c *chronicle) onceFaults(all []*story) []string {
	var faults []string
	for number, b := range c.bills(all) {
		fault := func(format string, args ...any) {
			faults = append(faults, fmt.Sprintf("once: order %d", number)+fmt.Sprintf(format, args...))
		}
		record, n := c.records[number], c.payments[number]
		if lotOf(c.seed, number).dies != "" {
			if n != 0 || len(b.paid)+len(b.marks) > 0 || record.State != idempotency.StateFailed {
				fault(" was to die: paid %d times, recorded as %q", n, record.State)
			}
			continue
		}
		for _, why := range b.faults(c) {
			fault("%s", why)
		}
		if least, most := int64(len(b.paid)), int64(len(b.paid)+len(b.lost)); n < max(least, 1) || n > most {
			fault(" was paid %d times, by %d runs and %d lost ones", n, least, len(b.lost))
		}
		byPayer := func(r appRun) bool { return strings.HasPrefix(record.Owner.Message, c.queue+"/"+r.start.ID+"#") }
		if record.State != idempotency.StateDone || !slices.ContainsFunc(slices.Concat(b.paid, b.lost), byPayer) {
			fault(" is recorded as %q by %q", record.State, record.Owner.Message)
		}
	}
	return faults
}

// faults are what is wrong with the runs that paid and the marks they left.
func (b *bill) faults(c *chronicle) []string {
	var faults []string
	marked := func(r appRun) bool {
		return slices.ContainsFunc(b.marks, func(m entry) bool { return m.Span == r.start.Span })
	}
	for i, r := range b.paid {
		killed := r.start.Worker == c.victim
		if !marked(r) && !killed {
			faults = append(faults, fmt.Sprintf(": %s paid without a mark", r.start.ID))
		}
		if i < len(b.paid)-1 && (!killed || marked(r)) {
			faults = append(faults, fmt.Sprintf(": %s paid, and so did %s after it", r.start.ID, b.paid[i+1].start.ID))
		}
	}
	for _, m := range b.marks {
		for _, s := range b.starts {
			if s.At.After(m.At) {
				faults = append(faults, fmt.Sprintf(": %s ran after it was marked as done", s.ID))
			}
		}
	}
	return faults
}
