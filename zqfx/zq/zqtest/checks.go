package zqtest

import "fmt"

// CheckAllDone finds messages without an outcome: of the given ids, or of all
// that were enqueued if none is given. Done is Succeeded, Acked, Dead or
// Cancelled, with no start or replay after it.
func (r *Recorder) CheckAllDone(ids ...string) []Violation {
	last := map[string]Op{}
	var enqueued []string
	for _, e := range r.Events() {
		if _, known := last[e.ID]; e.Op == Enqueued && !known {
			enqueued = append(enqueued, e.ID)
		}
		if decided(last[e.ID]) && (e.Op == Enqueued || e.Op == Claimed || e.Op == Lost || e.Op == Skipped) {
			continue // a duplicate, or about work that is decided
		}
		last[e.ID] = e.Op
	}
	if len(ids) == 0 {
		ids = enqueued
	}
	var found []Violation
	for _, id := range ids {
		op, known := last[id]
		switch {
		case !known:
			found = append(found, Violation{Check: "done", ID: id, Text: id + " appears nowhere in the history"})
		case !decided(op):
			found = append(found, Violation{Check: "done", ID: id, Text: fmt.Sprintf("%s has no outcome; it was last %s", id, op)})
		}
	}
	return found
}

func decided(op Op) bool { return op == Succeeded || op == Acked || op == Dead || op == Cancelled }

// CheckAckFinal finds messages that started after their ack was recorded.
func (r *Recorder) CheckAckFinal() []Violation {
	var found []Violation
	acked := map[string]int{}
	for i, e := range r.Events() {
		at, is := acked[e.ID]
		switch {
		case e.Op == Acked && !is:
			acked[e.ID] = i
		case e.Op == Started && is:
			found = append(found, Violation{Check: "ack-final", Key: e.Key, ID: e.ID, Text: fmt.Sprintf(
				"%s was acked (event %d) and started again%s", e.ID, at, where(i, e))})
		}
	}
	return found
}

// CheckOnce finds messages that started more than once. It is for runs without
// crashes and failures; with them, at least once is all that is promised.
func (r *Recorder) CheckOnce() []Violation {
	var found []Violation
	starts := map[string]int{}
	for i, e := range r.Events() {
		if e.Op != Started {
			continue
		}
		if starts[e.ID]++; starts[e.ID] > 1 {
			found = append(found, Violation{Check: "once", Key: e.Key, ID: e.ID, Text: fmt.Sprintf(
				"%s started for the %d. time%s", e.ID, starts[e.ID], where(i, e))})
		}
	}
	return found
}

// CheckOneHolder finds two runs at one time: of a key, or of a message without
// one. A run ends with an outcome from its worker, or with Lost; so record Lost
// when you kill a worker or let its lease run out.
func (r *Recorder) CheckOneHolder() []Violation {
	var found []Violation
	keys := map[string]string{}
	running := map[string]Event{} // by key, or by id
	for i, e := range r.Events() {
		if e.Op == Enqueued {
			keys[e.ID] = e.Key
		}
		holder := "id " + e.ID
		if key := keys[e.ID]; key != "" {
			holder = "key " + key
		}
		switch e.Op {
		case Started:
			if other, is := running[holder]; is {
				found = append(found, Violation{Check: "one-holder", Key: keys[e.ID], ID: e.ID, Text: fmt.Sprintf(
					"%s started%s while %s was running on worker %q", e.ID, where(i, e), other.ID, other.Worker)})
			}
			running[holder] = e
		case Succeeded, Failed, Postponed, Dead:
			if run := running[holder]; run.ID == e.ID && (e.Worker == run.Worker || e.Op == Dead) {
				delete(running, holder)
			}
		case Lost:
			lose(running, e)
		}
	}
	return found
}

// lose ends the runs that a Lost event is about.
func lose(running map[string]Event, e Event) {
	for holder, run := range running {
		if run.Worker == e.Worker && (e.ID == "" || e.ID == run.ID) {
			delete(running, holder)
		}
	}
}

// where names an event in the text of a violation.
func where(i int, e Event) string {
	if e.Worker == "" {
		return fmt.Sprintf(" (event %d)", i)
	}
	return fmt.Sprintf(" (event %d, worker %q)", i, e.Worker)
}
