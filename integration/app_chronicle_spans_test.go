package integration_test

import (
	"fmt"
	"slices"
)

// spanFaults compares process spans with runs: one for each, and for each skip, in a trace of its own, with links to
// where the message was made and to the run before.
func (c *chronicle) spanFaults(all []*story) []string {
	var faults []string
	spans, traces := map[string][]entry{}, map[string]int{}
	perWorker, consumed := map[string]int64{}, map[string]int64{}
	for _, e := range c.entries {
		switch e.Saw {
		case sawSpan:
			spans[e.Span] = append(spans[e.Span], e)
			traces[e.Trace]++
			perWorker[e.Worker]++
		case sawConsumed:
			consumed[e.Worker] = e.Count
		}
	}
	take := func(of entry) *entry {
		got := spans[of.Span]
		delete(spans, of.Span)
		switch {
		case len(got) == 0 && of.Worker == c.victim:
			return nil
		case len(got) != 1:
			faults = append(faults, fmt.Sprintf("span: %s attempt %d has %d spans", of.ID, of.Attempt, len(got)))
			return nil
		}
		return &got[0]
	}
	for _, st := range all {
		for i, r := range st.runs {
			if s := take(r.start); s != nil {
				faults = append(faults, c.spanFault(st, i, *s)...)
			}
		}
		for _, e := range st.skips {
			if s := take(e); s != nil && (s.Outcome != "skipped" || s.Failed || s.ID != e.ID || s.From != st.Span || s.Parent) {
				faults = append(faults, fmt.Sprintf("span: the skip of %s has %+v", e.ID, *s))
			}
		}
	}
	for _, left := range spans {
		faults = append(faults, fmt.Sprintf("span: of no run: %+v", left[0]))
	}
	for id, n := range traces {
		if n > 1 {
			faults = append(faults, fmt.Sprintf("span: %d runs in the trace %s", n, id))
		}
	}
	for worker, n := range perWorker {
		if worker != c.victim && consumed[worker] != n {
			faults = append(faults, fmt.Sprintf("span: %s made %d, and counted %d runs", worker, n, consumed[worker]))
		}
	}
	return faults
}

// spanFault compares the span of a message's run with what its handler saw.
func (c *chronicle) spanFault(st *story, i int, s entry) []string {
	r := st.runs[i]
	want := r.start
	want.Saw, want.At, want.Key, want.Order, want.From = s.Saw, s.At, s.Key, s.Order, st.Span
	want.Failed = r.end.Saw == sawFailed || r.end.Saw == sawDead
	want.Outcome = s.Outcome // ran, or nothing for what ended without a record
	if i > 0 {
		want.Before = st.runs[i-1].start.Span
		// Word of a run is lost with a killed worker; then the link is to one before it, or there is none.
		if st.runs[i-1].start.Worker == c.victim && leadsTo(st.runs[:i], s.Before) {
			want.Before = s.Before
		}
	}
	if s != want {
		return []string{fmt.Sprintf("span: attempt %d of %s has %+v, want %+v", r.start.Attempt, st.ID, s, want)}
	}
	return nil
}

// leadsTo tells whether the span is one of these runs', or none.
func leadsTo(runs []appRun, span string) bool {
	return span == "" || slices.ContainsFunc(runs, func(r appRun) bool { return r.start.Span == span })
}
