package report

import (
	"strings"
	"testing"

	"github.com/zqueue/zqueue/examples/quickstart/internal/events"
)

// play tells a history to a new tally. "a1" is event 1 of customer a. Words: enq, dup, ref, skip, dead, replay and
// done as the methods, "try" starts an attempt, "fail" ends it, "run" is try and done.
func play(t *testing.T, script string) *Tally {
	t.Helper()
	tally := New(nil)
	attempts := make(map[string]int)
	for _, line := range strings.Split(script, ",") {
		words := strings.Fields(line)
		for _, name := range words[1:] {
			e := events.Event{OrderID: name, Customer: name[:1], Sequence: int(name[1] - '0'), Kind: events.Paid}
			switch words[0] {
			case "enq":
				tally.Enqueuing(e)
			case "dup":
				tally.Duplicate(e)
			case "ref":
				tally.Refused(e)
			case "try", "run":
				attempts[name]++
				tally.Started(e, attempts[name])
				if words[0] == "run" {
					tally.Done(e)
				}
			case "fail":
				tally.Failed(e)
			case "done":
				tally.Done(e)
			case "skip":
				tally.Skipped(e)
			case "dead":
				tally.Dead(e, "no such currency")
			case "replay":
				attempts[name] = 0
				tally.Replayed(e)
			default:
				t.Fatalf("no word %q", words[0])
			}
		}
	}
	tally.Sent()
	return tally
}

// faults is what a history proves.
type faults struct{ order, doubled, lost int }

type historyTest struct {
	name, script string
	want         faults
}

func TestGoodHistories(t *testing.T) {
	t.Parallel()
	checkHistories(t, []historyTest{
		{"in order", "enq a1 a2 b1, run a1 b1 a2", faults{}},
		{"customers overtake each other", "enq a1 a2 b1 b2, run b1 b2 a1 a2", faults{}},
		{"a worker is faster than the sender", "enq a1, run a1, enq a2, run a2", faults{}},
		{"a retry keeps its place", "enq a1 a2, try a1, fail a1, try a1, fail a1, run a1 a2", faults{}},
		{"a dead letter lets the next go", "enq a1 a2, try a1, fail a1, dead a1, run a2", faults{}},
		{"a dead letter without the failure told", "enq a1 a2, try a1, dead a1, run a2", faults{}},
		{"a dead letter told late", "enq a1 a2, try a1, fail a1, run a2, dead a1", faults{}},
		{"a dead letter told twice", "enq a1 a2, try a1, fail a1, dead a1, run a2, dead a1", faults{}},
		{"a duplicate in the file", "enq a1 a2 a1, dup a1, run a1 a2", faults{}},
		{"a duplicate told after it ran", "enq a1 a1, run a1, dup a1", faults{}},
		{"known from an earlier run", "enq a1 a2, run a2, dup a1", faults{}},
		{"left over from an earlier run", "run a1, enq a1 a2, dup a1, run a2", faults{}},
		{"refused", "enq a1 a2, ref a1, run a2", faults{}},
		{"a replay comes after later events", "enq a1 a2 a3, run a1, try a2, dead a2, try a3, replay a2, run a2, done a3", faults{}},
		{"done by an earlier run, which the queue has not heard of", "skip a1, enq a1 a2, dup a1, run a2", faults{}},
		{"done by an earlier run, which the queue has forgotten", "enq a1 a2, skip a1, run a2", faults{}},
		{"a replay that dies again", "enq a1, try a1, dead a1, replay a1, try a1, fail a1, try a1, dead a1", faults{}},
	})
}

func TestBadHistories(t *testing.T) {
	t.Parallel()
	checkHistories(t, []historyTest{
		{"swapped", "enq a1 a2, run a2 a1", faults{order: 1}},
		{"started while the one before runs", "enq a1 a2, try a1, try a2, done a1, done a2", faults{order: 1}},
		{"started between two attempts", "enq a1 a2, try a1, fail a1, run a2, run a1", faults{order: 1}},
		{"started between attempts of one that dies later", "enq a1 a2, try a1, fail a1, run a2, try a1, fail a1, dead a1", faults{order: 1}},
		{"each that overtakes counts once", "enq a1 a2 a3 a4, try a2, fail a2, run a2 a3 a1 a4", faults{order: 2}},
		{"only the customer concerned", "enq a1 a2 b1 b2, run a2 b1 b2 a1", faults{order: 1}},
		{"behind a failed one that never came back", "enq a1 a2, try a1, fail a1, run a2", faults{order: 1, lost: 1}},
		{"never started", "enq a1 a2, run a1", faults{lost: 1}},
		{"never finished", "enq a1, try a1", faults{lost: 1}},
		{"gone after a failure", "enq a1 b1, try a1, fail a1, run b1", faults{lost: 1}},
		{"a replay that vanishes", "enq a1, try a1, dead a1, replay a1", faults{lost: 1}},
		{"run twice", "enq a1, run a1 a1", faults{doubled: 1}},
		{"run five times counts once", "enq a1, run a1 a1 a1 a1 a1", faults{doubled: 1}},
		{"two at once", "enq a1, try a1, try a1, done a1, done a1", faults{doubled: 1}},
		{"two at once, one of them in vain", "enq a1, try a1, try a1, fail a1, done a1", faults{doubled: 1}},
		{"started again after it was done", "enq a1, run a1, try a1, fail a1", faults{doubled: 1}},
		{"delivered again after it was done", "enq a1, run a1, skip a1", faults{doubled: 1}},
		{"delivered again after it was dead", "enq a1, try a1, dead a1, skip a1", faults{doubled: 1}},
		{"skipped before its turn", "enq a1 a2 a3, skip a2, run a3 a1", faults{order: 1}},
		{"started again after it was dead", "enq a1, try a1, dead a1, run a1", faults{doubled: 1}},
		{"done and dead", "enq a1, run a1, dead a1", faults{doubled: 1}},
		{"a duplicate let in and run", "enq a1 a1, run a1 a1", faults{doubled: 1}},
		{"a duplicate let in and not run", "enq a1 a1, run a1", faults{doubled: 1}},
		{"a replay run twice", "enq a1, try a1, dead a1, replay a1, run a1 a1", faults{doubled: 1}},
		{"a left over one run twice", "run a1 a1", faults{doubled: 1}},
		{"all at once", "enq a1 a2 b1 c1, run a2 a1 c1 c1", faults{order: 1, doubled: 1, lost: 1}},
	})
}

func checkHistories(t *testing.T, tests []historyTest) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := play(t, tt.script).Summary()
			if have := (faults{s.OutOfOrder, s.Doubled, s.Lost}); have != tt.want {
				t.Errorf("have %+v, want %+v\n%s", have, tt.want, strings.Join(s.Findings, "\n"))
			}
			bad := tt.want != faults{}
			if (s.ExitStatus() != 0) != (bad || s.Refused > 0) {
				t.Errorf("exit status %d", s.ExitStatus())
			}
			if bad != (len(s.Findings) > 0) {
				t.Errorf("findings %q", s.Findings)
			}
		})
	}
}

func TestFindingsNameTheEventsAndAreBounded(t *testing.T) {
	t.Parallel()
	s := play(t, "enq a1 a2, run a2 a1").Summary()
	if want := `customer "a": event 2 ("a2/paid/2") started before event 1 ("a1/paid/1") was decided`; s.Findings[0] != want {
		t.Errorf("have %s", s.Findings[0])
	}
	s = play(t, "enq a1 a2 a3 a4 a5 a6 a7 a8 a9 b1 b2 b3 b4 b5").Summary()
	if s.Lost != 14 || len(s.Findings) != maxFindings {
		t.Errorf("%d lost, %d findings", s.Lost, len(s.Findings))
	}
}
