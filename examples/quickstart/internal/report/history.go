package report

import (
	"fmt"
	"math"
)

// op is what happened to an event in one step of the history.
type op uint8

const (
	opStarted op = iota
	opFailed
	opDone
	opSkipped
	opDead
	opReplayed
)

// record is one event as the history knows it. It keeps no amounts: a report has no use for them.
type record struct {
	id       string
	customer string
	sequence int
	accepted int  // times the queue was offered it, less the times it said duplicate or refused
	sent     bool // offered in this run; false for what an earlier run left in the queue
}

// step is one line of the history. Steps are in the order in which the tally was told.
type step struct {
	op  op
	rec *record
}

// never is the place in the history of an outcome that did not come.
const never = math.MaxInt

// verdict is what the history proves. Each event counts once in each number, however often it broke the rule.
type verdict struct {
	outOfOrder, doubled, lost int
	findings                  []string
}

// maxFindings bounds what is printed; the numbers count all.
const maxFindings = 10

func (v *verdict) found(r *record, what string) {
	if len(v.findings) < maxFindings {
		v.findings = append(v.findings, fmt.Sprintf("customer %s: event %d (%s) %s", quote(r.customer), r.sequence, quote(r.id), what))
	}
}

// judge reads the whole history afterwards, because two facts come late: that the queue knew an event
// already (its reply can be slower than a worker), and that an event went to the dead letters.
func judge(records []*record, steps []step) verdict {
	var v verdict
	judgeOrder(&v, records, steps)
	judgeRuns(&v, records, steps)
	return v
}

// judgeOrder demands that an event starts only after the outcome of every earlier one of its customer.
// A replay needs no exemption: what came before it was decided when it first ran, and what comes after it does not wait.
func judgeOrder(v *verdict, records []*record, steps []step) {
	decided := decisions(steps)
	lanes := make(map[string][]*record)
	// latest is when the last of the events before this one was decided.
	latest := make(map[*record]int, len(records))
	end := make(map[string]int)
	for _, r := range records {
		if r.accepted < 1 {
			continue
		}
		lanes[r.customer] = append(lanes[r.customer], r)
		latest[r] = end[r.customer]
		end[r.customer] = max(end[r.customer], decidedAt(decided, r))
	}
	judged := make(map[*record]bool)
	for i, s := range steps {
		if s.op == opStarted && !judged[s.rec] && latest[s.rec] > i {
			judged[s.rec] = true
			v.outOfOrder++
			v.found(s.rec, "started before "+earliest(lanes[s.rec.customer], decided, i)+" was decided")
		}
	}
}

// decisions says at which step each event was done, skipped or dead for the first time.
// Being told of a dead letter may lag behind; then the event's turn ended with its last failed attempt.
func decisions(steps []step) map[*record]int {
	decided := make(map[*record]int)
	last := make(map[*record]int) // the last step of each event
	for i, s := range steps {
		if _, known := decided[s.rec]; !known {
			switch s.op {
			case opDone, opSkipped:
				decided[s.rec] = i
			case opDead:
				decided[s.rec] = i
				if l, ran := last[s.rec]; ran && steps[l].op == opFailed {
					decided[s.rec] = l
				}
			}
		}
		last[s.rec] = i
	}
	return decided
}

func decidedAt(decided map[*record]int, r *record) int {
	if at, known := decided[r]; known {
		return at
	}
	return never
}

// earliest names the first event of a lane that was undecided at a step.
func earliest(lane []*record, decided map[*record]int, at int) string {
	for _, r := range lane {
		if decidedAt(decided, r) > at {
			return fmt.Sprintf("event %d (%s)", r.sequence, quote(r.id))
		}
	}
	return "an earlier one"
}

// run is where an event stands while its steps are walked.
type run struct {
	running, done, dead, doubled bool
}

// judgeRuns demands one run at a time, no run after the outcome, and an outcome for all that was accepted.
func judgeRuns(v *verdict, records []*record, steps []step) {
	runs := make(map[*record]*run, len(records))
	for _, s := range steps {
		r := runs[s.rec]
		if r == nil {
			r = new(run)
			runs[s.rec] = r
		}
		if what := r.apply(s.op); what != "" && !r.doubled {
			r.doubled = true
			v.doubled++
			v.found(s.rec, what)
		}
	}
	for _, rec := range records {
		r := runs[rec]
		switch {
		case rec.accepted > 1:
			if r == nil || !r.doubled {
				v.doubled++
				v.found(rec, "was accepted twice")
			}
		case rec.accepted == 1 && (r == nil || !r.done && !r.dead):
			v.lost++
			v.found(rec, "has no outcome")
		}
	}
}

// apply moves the event on and returns what was wrong with the step, "" if nothing.
func (r *run) apply(o op) string {
	was := *r
	switch o {
	case opStarted:
		r.running = true
		switch {
		case was.running:
			return "started while it was running"
		case was.done:
			return "started again after it was done"
		case was.dead:
			return "started again after it was dead"
		}
	case opFailed:
		r.running = false
	case opDone:
		r.running, r.done = false, true
		switch {
		case was.done:
			return "was done twice"
		case was.dead:
			return "was done and is a dead letter"
		}
	case opSkipped:
		r.done = true
		switch {
		case was.done:
			return "was delivered again after it was done"
		case was.dead:
			return "was delivered again after it was dead"
		}
	case opDead:
		r.running, r.dead = false, true
		if was.done {
			return "was done and is a dead letter"
		}
	case opReplayed:
		r.running, r.done, r.dead = false, false, false
	}
	return ""
}
