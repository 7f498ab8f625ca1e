package report

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zqueue/zqueue/examples/quickstart/internal/events"
)

func TestCounts(t *testing.T) {
	t.Parallel()
	tally := play(t, "enq a1 a2 a3 b1 c1, dup b1, ref c1, run z1,"+
		"try a1, fail a1, try a1, fail a1, run a1, try a2, fail a2, try a2, fail a2, dead a2, run a3, replay a2, try a2, fail a2, try a2, dead a2")
	tally.Malformed(7)
	s := tally.Summary()
	want := Summary{
		Read: 6, Malformed: 1, Duplicates: 1, Refused: 1, Accepted: 3, Customers: 3, Left: 1,
		Processed: 3, Retried: 2, ExtraRuns: 3, Dead: 1, Replayed: 1, ReplayedDead: 1,
	}
	if len(s.DeadReasons) != 1 || s.DeadReasons[0] != (ReasonCount{"no such currency", 1}) || s.MalformedLines[0] != 7 {
		t.Errorf("reasons %v, lines %v", s.DeadReasons, s.MalformedLines)
	}
	s.DeadReasons, s.MalformedLines, s.Elapsed = nil, nil, 0
	if have, want := fmt.Sprintf("%+v", s), fmt.Sprintf("%+v", want); have != want {
		t.Errorf("have %s\nwant %s", have, want)
	}
	if s.ExitStatus() != 1 {
		t.Error("a refused event must show in the exit status")
	}
}

func TestOutcomesToldTwiceCountOnce(t *testing.T) {
	t.Parallel()
	s := play(t, "enq a1 b1 c1, run a1 a1, dead b1, dead b1, dead c1, replay c1, run c1 c1").Summary()
	if s.Processed != 1 || s.Dead != 2 || s.DeadReasons[0].Count != 2 || s.ReplayedDone != 1 {
		t.Errorf("%+v", s)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	s := Summary{
		Read: 2378, Malformed: 3, MalformedLines: []int{9, 70, 1200}, Duplicates: 40, Accepted: 2335, Customers: 200,
		Processed: 2334, Retried: 13, ExtraRuns: 26, Dead: 1, DeadReasons: []ReasonCount{{"currency XXX is unknown", 1}},
		Replayed: 1, ReplayedDone: 1, Elapsed: 467 * time.Millisecond,
	}
	want := `
read                         2,378  
malformed                        3  lines 9, 70, 1200
duplicates                      40  
accepted                     2,335  of 200 customers
processed                    2,334  
retried                         13  26 more attempts
dead                             1  
  currency XXX is unknown        1  
replayed                         1  1 processed, 0 dead again
order violations                 0  
lost                             0  
doubled                          0  
jobs/s                       5,000  in 467ms
`
	var out strings.Builder
	if err := s.Table(&out); err != nil {
		t.Fatal(err)
	}
	if have := "\n" + out.String(); have != want {
		t.Errorf("have%s\nwant%s", have, want)
	}
	if err := s.Table(brokenWriter{}); err == nil {
		t.Error("a write that failed must be told")
	}
	out.Reset()
	if err := play(t, "enq a1 a2, run a2 a1").Summary().Table(&out); err != nil || !strings.Contains(out.String(), `! customer "a": event 2`) {
		t.Errorf("no finding in %s", out.String())
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("closed") }

func TestDeadReasonsAreBoundedLines(t *testing.T) {
	t.Parallel()
	tally := New(nil)
	for i := range 40 {
		e := events.Event{OrderID: fmt.Sprint(i), Customer: "a", Sequence: i + 1}
		tally.Dead(e, fmt.Sprintf("reason\t%d\n%s", i, strings.Repeat("é", 100)))
	}
	s, sum := tally.Summary(), 0
	for _, r := range s.DeadReasons {
		sum += r.Count
		if len(r.Reason) > 64 || strings.ContainsAny(r.Reason, "\t\n") {
			t.Errorf("reason %q", r.Reason)
		}
	}
	if len(s.DeadReasons) != maxReasons || sum != 40 {
		t.Errorf("%d reasons of %d dead letters", len(s.DeadReasons), sum)
	}
}

func TestElapsedIsFromTheFirstSentToTheLastOutcome(t *testing.T) {
	t.Parallel()
	clock := time.Date(2025, 11, 28, 0, 0, 0, 0, time.UTC)
	tally := New(func() time.Time { return clock })
	if s := tally.Summary(); s.Elapsed != 0 || s.PerSecond() != 0 {
		t.Errorf("an empty run took %v, %v jobs/s", s.Elapsed, s.PerSecond())
	}
	e := events.Event{OrderID: "1", Customer: "a", Sequence: 1}
	poison := events.Event{OrderID: "2", Customer: "b", Sequence: 1}
	tally.Enqueuing(e)
	tally.Enqueuing(poison)
	tally.Started(e, 1)
	tally.Started(poison, 1)
	clock = clock.Add(time.Second)
	tally.Dead(poison, "no")
	clock = clock.Add(time.Second)
	tally.Done(e)
	clock = clock.Add(time.Hour)
	tally.Replayed(poison)
	tally.Started(poison, 1)
	tally.Done(poison)
	if s := tally.Summary(); s.Elapsed != 2*time.Second || s.PerSecond() != 1 {
		t.Errorf("took %v, %v jobs/s", s.Elapsed, s.PerSecond())
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	e := events.Event{OrderID: "1", Customer: "a", Sequence: 1}
	tally := New(nil)
	tally.Enqueuing(e)
	tally.Started(e, 1)
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	if err := tally.Wait(ctx); !errors.Is(err, stop) {
		t.Errorf("one is running: %v", err)
	}
	tally.Dead(e, "no")
	if err := tally.Wait(ctx); !errors.Is(err, stop) {
		t.Errorf("more may be sent: %v", err)
	}
	tally.Sent()
	if err := tally.Wait(t.Context()); err != nil || tally.Waiting() != 0 {
		t.Errorf("%v, %d waiting", err, tally.Waiting())
	}
	tally.Replayed(e)
	if tally.Waiting() != 1 {
		t.Errorf("%d waiting after a replay", tally.Waiting())
	}
	var wg sync.WaitGroup
	for range 3 { // all who wait are told
		wg.Go(func() {
			if err := tally.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	tally.Done(e)
	wg.Wait()
}

func TestWaitingFollowsTheSendersReplies(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{
		"enq a1 a1":                     1,
		"enq a1 a1, dup a1":             1,
		"enq a1, dup a1":                0,
		"enq a1, ref a1":                0,
		"enq a1, run a1":                0,
		"enq a1, run a1, dup a1":        0,
		"run a1, enq a1, dup a1":        0,
		"run a1, enq a1 a2":             1,
		"enq a1, try a1, fail a1":       1,
		"enq a1, dead a1, dead a1":      0,
		"enq a1, dead a1, replay a1":    1,
		"enq a1, dup a1, dead a1":       0,
		"enq a1, skip a1":               0,
		"dead a1, replay a1":            1, // an earlier run's dead letter
		"enq a1, run a1 a1, dup a1":     0,
		"enq a1 a2, run a1 a1, try a2 ": 1,
	} {
		if have := play(t, script).Waiting(); have != want {
			t.Errorf("%s: %d waiting, want %d", script, have, want)
		}
	}
}

func TestSkippedIsAnOutcomeOfItsOwn(t *testing.T) {
	t.Parallel()
	s := play(t, "skip l1, enq a1 a2, skip a1, run a2, skip a2").Summary()
	if s.Skipped != 2 || s.Processed != 1 || s.Left != 1 || s.Lost != 0 || s.Doubled != 1 {
		t.Errorf("%+v", s)
	}
	var out strings.Builder
	err := s.Table(&out)
	text := strings.Join(strings.Fields(out.String()), " ")
	if err != nil || !strings.Contains(text, " skipped 2 done by an earlier run ") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// TestTallyConcurrentSafe plays a good queue with one worker a customer; none of it may look like a violation.
func TestTallyConcurrentSafe(t *testing.T) {
	t.Parallel()
	const customers, each = 16, 40
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	tally := New(nil)
	var workers sync.WaitGroup
	for c := range customers {
		todo := make(chan events.Event, each)
		workers.Go(func() { work(tally, todo, rand.New(rand.NewPCG(seed, uint64(c)))) })
		workers.Go(func() {
			defer close(todo)
			for i := range each {
				e := events.Event{OrderID: fmt.Sprintf("%d-%d", c, i), Customer: fmt.Sprint(c), Sequence: i + 1, Kind: events.Paid}
				tally.Enqueuing(e)
				todo <- e
				tally.Enqueuing(e)
				tally.Duplicate(e)
			}
		})
	}
	workers.Wait()
	tally.Sent()
	if err := tally.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := tally.Summary()
	if s.ExitStatus() != 0 || s.Processed+s.Dead != customers*each || s.Duplicates != customers*each || s.Accepted != customers*each {
		t.Errorf("%+v", s)
	}
}

func work(tally *Tally, todo <-chan events.Event, rng *rand.Rand) {
	for e := range todo {
		fails := max(0, rng.IntN(8)-4)
		for attempt := 1; ; attempt++ {
			tally.Started(e, attempt)
			if attempt == 3 {
				tally.Dead(e, "three failures")
				break
			}
			if attempt > fails {
				tally.Done(e)
				break
			}
			tally.Failed(e)
		}
	}
}
