package zqtest_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// history reads "op id [worker]" a line. Enqueued messages get the key "k", or
// none if the id starts with "-", and their place as Seq; "enqueued id score"
// gives a score.
func history(t testing.TB, text string) *zqtest.Recorder {
	t.Helper()
	r := &zqtest.Recorder{}
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		words := append(strings.Fields(line), "", "")
		e := zqtest.Event{Op: zqtest.Op(words[0]), ID: words[1], Worker: words[2]}
		switch e.Op {
		case zqtest.Enqueued:
			e.Worker, e.Seq = "", int64(i+1)
			if !strings.HasPrefix(e.ID, "-") {
				e.Key = "k"
			}
			_, _ = fmt.Sscan(words[2], &e.Score) // none given: zero
		case zqtest.Lost:
			e.ID, e.Worker = "", words[1]
		}
		r.Add(e)
	}
	return r
}

type verdict struct {
	name    string
	history string
	want    []string // parts of each violation's text, in order; none: a good history
}

func judge(t *testing.T, check func(*zqtest.Recorder) []zqtest.Violation, verdicts []verdict) {
	for _, v := range verdicts {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			got := check(history(t, v.history))
			if len(got) != len(v.want) {
				t.Fatalf("got %d violations %v, want %q", len(got), got, v.want)
			}
			for i, want := range v.want {
				if !strings.Contains(got[i].String(), want) {
					t.Errorf("violation %q does not say %q", got[i], want)
				}
			}
		})
	}
}

func TestCheckOrderAcceptsGoodHistories(t *testing.T) {
	t.Parallel()
	judge(t, (*zqtest.Recorder).CheckOrder, []verdict{
		{name: "in order", history: "enqueued 1\nenqueued 2\nstarted 1\nsucceeded 1\nstarted 2\nsucceeded 2\nacked 1\nacked 2"},
		{name: "by score", history: "enqueued 1 20\nenqueued 2 10\nstarted 2\nsucceeded 2\nstarted 1\nsucceeded 1"},
		{name: "retry keeps the place", history: "enqueued 1\nenqueued 2\nstarted 1\nfailed 1\nstarted 1\nsucceeded 1\nstarted 2"},
		{name: "postponed keeps the place", history: "enqueued 1\nenqueued 2\nstarted 1\npostponed 1\nstarted 1\nsucceeded 1\nstarted 2"},
		{name: "dead lets the next pass", history: "enqueued 1\nenqueued 2\nstarted 1\nfailed 1\ndead 1\nstarted 2"},
		{name: "skipped lets the next pass", history: "enqueued 1\nenqueued 2\nstarted 1\nfailed 1\nskipped 1\nstarted 2\nsucceeded 2\nacked 2\nstarted 1"},
		{name: "cancelled lets the next pass", history: "enqueued 1\nenqueued 2\ncancelled 1\nstarted 2"},
		{name: "without a key", history: "enqueued -1\nenqueued -2\nstarted -2\nstarted -1"},
		{name: "started ahead of its receipt", history: "started 1\nenqueued 1\nenqueued 2\nsucceeded 1\nstarted 2"},
		{name: "a lower score that came too late", history: "enqueued 1 20\nstarted 1\nenqueued 2 10\nsucceeded 1\nstarted 2"},
		{name: "a lower score that came after the claim", history: "enqueued 1 20\nclaimed 1\nenqueued 2 10\nstarted 1\nsucceeded 1\nstarted 2"},
		{name: "crash re-runs the unrecorded", history: "enqueued 1\nenqueued 2\nenqueued 3\n" +
			"started 1 a\nsucceeded 1 a\nacked 1\nstarted 2 a\nsucceeded 2 a\nstarted 3 a\nlost a\n" +
			"started 2 b\nsucceeded 2 b\nstarted 3 b\nsucceeded 3 b"},
		{name: "two crashes", history: "enqueued 1\nenqueued 2\n" +
			"started 1 a\nsucceeded 1 a\nstarted 2 a\nlost a\nstarted 1 b\nsucceeded 1 b\nstarted 2 b\nlost b\n" +
			"started 1 c\nsucceeded 1 c\nstarted 2 c\nsucceeded 2 c"},
		{name: "crash after an unconfirmed record", history: "enqueued 1\nenqueued 2\n" +
			"started 1 a\nsucceeded 1 a\nstarted 2 a\nlost a\nstarted 2 b\nsucceeded 2 b"},
		{name: "crash nobody recorded", history: "enqueued 1\nenqueued 2\nstarted 1 a\nstarted 1 b\nsucceeded 1 b\nstarted 2 b"},
		{name: "replayed", history: "enqueued 1\nenqueued 2\nstarted 1\ndead 1\nstarted 2\nsucceeded 2\nacked 2\nreplayed 1\nstarted 1"},
		{name: "a skipped one stands outside the order", history: "enqueued 1\nenqueued 2\nstarted 1\nfailed 1\nskipped 1\n" +
			"started 2 a\nstarted 1 b\nsucceeded 1 b\nsucceeded 2 a\nacked 2\nlost b\nstarted 1 c"},
		{name: "duplicate enqueue", history: "enqueued 1\nenqueued 2\nstarted 1\nsucceeded 1\nacked 1\nenqueued 1\nstarted 2"},
	})
}

func TestCheckOrderCatchesBadHistories(t *testing.T) {
	t.Parallel()
	judge(t, (*zqtest.Recorder).CheckOrder, []verdict{
		{"overtaken", "enqueued 1\nenqueued 2\nstarted 2", []string{"order: key k: 2 started (event 2) while 1, which goes before it, was waiting"}},
		{"at once", "enqueued 1\nenqueued 2\nstarted 1\nstarted 2 b", []string{`2 started (event 3, worker "b") while 1, which goes before it, was running`}},
		{"score ignored", "enqueued 1 20\nenqueued 2 10\nstarted 1", []string{"1 started (event 2) while 2"}},
		{"passed a retry", "enqueued 1\nenqueued 2\nstarted 1\nfailed 1\nstarted 2", []string{"2 started (event 4) while 1, which goes before it, was waiting"}},
		{"passed what a crash returned", "enqueued 1\nenqueued 2\nstarted 1 a\nlost a\nstarted 2 b", []string{"while 1, which goes before it, was waiting"}},
		{"acked and run again", "enqueued 1\nstarted 1\nsucceeded 1\nacked 1\nstarted 1", []string{"1 started (event 4) although its outcome"}},
		{"re-run after a later one was recorded", "enqueued 1\nenqueued 2\nstarted 1\nsucceeded 1\nstarted 2\nsucceeded 2\nacked 2\nstarted 1", []string{"1 started (event 7) although"}},
		{"re-run from the wrong end", "enqueued 1\nenqueued 2\nstarted 1 a\nsucceeded 1 a\nstarted 2 a\nsucceeded 2 a\nlost a\nstarted 2 b\nsucceeded 2 b\nstarted 1 b", []string{"1 started (event 9, worker \"b\") although"}},
		{"late and low, re-run after a later one was recorded", "enqueued 1 20\nstarted 1\nsucceeded 1\nacked 1\n" +
			"enqueued 2 10\nenqueued 3 30\nstarted 2\nsucceeded 2\nstarted 3\nsucceeded 3\nacked 3\nstarted 2", []string{"2 started (event 11) although"}},
		{"the word of a zombie", "enqueued 1\nenqueued 2\nstarted 1 a\nstarted 1 b\nsucceeded 1 a\nstarted 2 a", []string{"2 started (event 5, worker \"a\") while 1, which goes before it, was running"}},
		{"the word of the dead", "enqueued 1\nenqueued 2\nstarted 1 a\nlost a\nsucceeded 1 a\nstarted 2 a", []string{"was waiting"}},
		{"replay overtaken", "enqueued 1\nenqueued 2\nstarted 1\ndead 1\nreplayed 1\nstarted 2", []string{"2 started (event 5) while 1"}},
		{"ahead of a message that ran before its receipt", "started 1\nenqueued 1\nenqueued 2\nstarted 2", []string{"while 1, which goes before it, was running"}},
		{"claimed when the other was there", "enqueued 1 20\nenqueued 2 10\nclaimed 1\nstarted 1", []string{"while 2"}},
	})
}

func TestCheckAllDone(t *testing.T) {
	t.Parallel()
	judge(t, func(r *zqtest.Recorder) []zqtest.Violation { return r.CheckAllDone() }, []verdict{
		{name: "all outcomes", history: "enqueued 1\nenqueued 2\nenqueued 3\nenqueued 4\n" +
			"started 1\nsucceeded 1\nacked 2\ndead 3\ncancelled 4\nlost a\nenqueued 1\nskipped 1"},
		{"never ran", "enqueued 1\nenqueued 2\nacked 2", []string{"done: 1 has no outcome; it was last enqueued"}},
		{"crashed", "enqueued 1\nstarted 1\nsucceeded 1\nstarted 1", []string{"last started"}},
		{"retried and forgotten", "enqueued 1\nstarted 1\nfailed 1", []string{"last failed"}},
		{"replayed and forgotten", "enqueued 1\ndead 1\nreplayed 1", []string{"last replayed"}},
	})
	got := history(t, "acked 1").CheckAllDone("1", "2")
	if len(got) != 1 || !strings.Contains(got[0].Text, "2 appears nowhere") {
		t.Errorf("got %v", got)
	}
}

func TestCheckAckFinal(t *testing.T) {
	t.Parallel()
	judge(t, (*zqtest.Recorder).CheckAckFinal, []verdict{
		{name: "final", history: "enqueued 1\nstarted 1\nsucceeded 1\nstarted 1\nsucceeded 1\nacked 1\nacked 1\nenqueued 1"},
		{"run again", "enqueued -1\nstarted -1\nacked -1\nstarted -1 b", []string{`ack-final: -1 was acked (event 2) and started again (event 3, worker "b")`}},
	})
}

func TestCheckOnce(t *testing.T) {
	t.Parallel()
	judge(t, (*zqtest.Recorder).CheckOnce, []verdict{
		{name: "once each", history: "enqueued 1\nenqueued 2\nstarted 1\nstarted 2"},
		{"twice", "started 1\nstarted 2\nstarted 1", []string{"once: 1 started for the 2. time (event 2)"}},
	})
}

func TestCheckOneHolder(t *testing.T) {
	t.Parallel()
	judge(t, (*zqtest.Recorder).CheckOneHolder, []verdict{
		{name: "one after another", history: "enqueued 1\nenqueued 2\nstarted 1 a\nsucceeded 1 a\nstarted 2 b\nfailed 2 b\nstarted 2 a\ndead 2\nstarted 1 b"},
		{name: "no key, no conflict", history: "enqueued -1\nenqueued -2\nstarted -1 a\nstarted -2 b"},
		{name: "after a loss", history: "enqueued 1\nstarted 1 a\nlost a\nstarted 1 b\nsucceeded 1 a\nsucceeded 1 b"},
		{"two of a key", "enqueued 1\nenqueued 2\nstarted 1 a\nstarted 2 b", []string{`one-holder: key k: 2 started (event 3, worker "b") while 1 was running on worker "a"`}},
		{"one message twice", "enqueued -1\nstarted -1 a\nstarted -1 b", []string{"while -1 was running"}},
		{"a zombie ends nothing", "enqueued 1\nstarted 1 a\nlost a\nstarted 1 b\nsucceeded 1 a\nstarted 1 c", []string{`running on worker "b"`}},
	})
}

func TestViolationsFailTheTest(t *testing.T) {
	t.Parallel()
	v := zqtest.Violation{Check: "order", Key: "k", ID: "1", Text: "1 went astray"}
	complaint := failing(t, func(t testing.TB) { zqtest.NoViolations(t, nil, make([]zqtest.Violation, 30), []zqtest.Violation{v}) })
	wantComplaint(t, complaint, "11 violations more")
	wantComplaint(t, failing(t, func(t testing.TB) { zqtest.NoViolations(t, []zqtest.Violation{v}) }), "order: key k: 1 went astray")
	if complaint := failing(t, func(t testing.TB) { zqtest.NoViolations(t, nil, nil) }); complaint != "" {
		t.Error(complaint)
	}
}

func TestEventLines(t *testing.T) {
	t.Parallel()
	want := zqtest.Event{
		Op: zqtest.Started, ID: "a b\n\x00é", Key: "k", Score: -1 << 53, Seq: 1<<53 - 1, Attempt: 2,
		Worker: "w", At: time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.UTC),
	}
	line := want.Line()
	if strings.ContainsAny(line, "\n\r") {
		t.Errorf("%q is more than a line", line)
	}
	early := zqtest.Event{Op: zqtest.Acked, ID: "early", At: want.At.Add(-time.Nanosecond)}
	var r zqtest.Recorder
	n := r.AddLines([]string{line, "noise", line[:len(line)-5], "zqtest.event {}", early.Line()})
	if diff := cmp.Diff([]zqtest.Event{early, want}, r.Events()); n != 2 || diff != "" {
		t.Errorf("%d events; want and got, by time:\n%s", n, diff)
	}
}

func TestRecorderConcurrentSafe(t *testing.T) {
	t.Parallel()
	var r zqtest.Recorder
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 100 {
				r.Add(zqtest.Event{Op: zqtest.Enqueued, ID: fmt.Sprint(w, "/", i), Key: "k", Seq: int64(i)})
				r.CheckOnce()
			}
		})
	}
	wg.Wait()
	if n := len(r.Events()); n != 800 {
		t.Errorf("%d events", n)
	}
}

func ExampleRecorder() {
	var r zqtest.Recorder
	for seq, id := range []string{"first", "second"} {
		r.Add(zqtest.Event{Op: zqtest.Enqueued, ID: id, Key: "customer-7", Seq: int64(seq)})
	}
	r.Add(zqtest.Event{Op: zqtest.Started, ID: "second", Worker: "w1"})
	for _, v := range r.CheckOrder() {
		fmt.Println(v)
	}
	// Output: order: key customer-7: second started (event 2, worker "w1") while first, which goes before it, was waiting
}
