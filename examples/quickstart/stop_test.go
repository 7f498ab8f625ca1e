package main

import (
	"bytes"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/zqueue/zqueue/examples/quickstart/internal/events"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

var interruptedLine = regexp.MustCompile(`interrupted: (\d+) events processed, (\d+) wait in queue`)

// checkInterrupted stops a run half way, with events done, events waiting in the queue and events not yet read,
// and lets a second run finish.
func checkInterrupted(t *testing.T, p program) {
	server, queue := zqtest.Shared(t), zqtest.Queue(t)
	look := inspector(t, server, queue)
	first := p.start(t, "-redis", server.URL(), "-queue", queue, "-file", "-")
	first.feed(t, 0, 1500)
	first.expect(t, "events: 1000")
	if _, err := look.Pause(t.Context()); err != nil { // what comes now will wait
		t.Fatal(err)
	}
	first.feed(t, 1500, 2000)
	wantSent(t, look, 2000)
	first.signal(t, os.Interrupt)
	r := first.wait(t)
	r.want(t, statusInterrupted)
	m := interruptedLine.FindStringSubmatch(r.out)
	if m == nil {
		t.Fatalf("not interrupted:\n%s\n%s", r.out, r.log)
	}
	processed, waiting := number(t, m[1]), number(t, m[2])
	if processed < 900 || waiting < 400 {
		t.Errorf("%d processed, %d waiting: that was not half way", processed, waiting)
	}
	if _, err := look.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	r = p.run(t, nil, "-redis", server.URL(), "-queue", queue)
	r.want(t, statusGood, append(shippedLetter, "with "+m[2]+" events that an earlier run has left", "verifies clean and is empty")...)
	got := r.table(t)
	if got["processed"]+processed != 2331 || got["left over"] != waiting {
		t.Errorf("%d and then %d processed, want 2331 together; %d left over, want %d", processed, got["processed"], got["left over"], waiting)
	}
	wantAll(t, look)
}

// checkKilled lets a run die when Redis has done what a command asks, and the program has not heard of it. The second
// run has what the first held when the lease is over.
func checkKilled(t *testing.T, p program, worst zqtest.Match) map[string]int {
	t.Helper()
	server, queue := zqtest.Shared(t), zqtest.Queue(t)
	proxy := zqtest.Proxy(t, server.Addr())
	frozen := proxy.HoldReply(worst)
	first := p.start(t, "-redis", "redis://"+proxy.Addr(), "-queue", queue, "-file", "-")
	first.feed(t, 0, 2000)
	zqtest.Wait(t, frozen.Done(), patience)
	first.signal(t, os.Kill)
	first.wait(t)
	frozen.Release()
	look := inspector(t, server, queue)
	depth, err := look.Depth(t.Context())
	if err != nil || depth.Unfinished() == 0 {
		t.Errorf("%v, %+v: that was not half way", err, depth)
	}
	r := p.run(t, nil, "-redis", server.URL(), "-queue", queue)
	r.want(t, statusGood, append(shippedLetter, "verifies clean and is empty")...)
	wantAll(t, look)
	return r.table(t)
}

// checkKilledBooked lets a run die when an event is booked that the queue thinks is still to do.
func checkKilledBooked(t *testing.T, p program) {
	if got := checkKilled(t, p, fromBooking(eventID(t, 999))); got["skipped"] == 0 {
		t.Error("what was booked has been booked again")
	}
}

// fromSettling matches all commands from the one that tells the queue an event's outcome: the queue's first about it
// enqueues it, the second records that.
func fromSettling(id string) zqtest.Match { return fromSecond(id, false) }

// fromBooking matches all commands from the one that tells the chain that an event is booked: the chain's first about
// it marks it as running, the second as done. The queue hears of it later.
func fromBooking(id string) zqtest.Match { return fromSecond(id, true) }

// fromSecond matches all commands from the second that names the event, among those of the chain or of the queue.
func fromSecond(id string, ofChain bool) zqtest.Match {
	n := 0
	return func(cmd []string) bool {
		if n < 2 && named(cmd, id) && named(cmd, chainKeys) == ofChain {
			n++
		}
		return n == 2
	}
}

// eventID is the id of the event in a line of the shipped export, counted from 0.
func eventID(t *testing.T, n int) string {
	t.Helper()
	for e, err := range events.Read(bytes.NewReader(lines(t, n, n+1))) {
		if err == nil {
			return e.ID()
		}
	}
	t.Fatalf("line %d is no event", n)
	return ""
}

// wantAll demands that each event of the shipped export is accepted and acked once.
func wantAll(t *testing.T, look *zq.Inspector) {
	t.Helper()
	c, err := look.Counters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c.Enqueued != 2332 || c.Acked != 2332 || c.Dead != 1 || c.Replayed != 1 {
		t.Errorf("counters %+v", c)
	}
}

// wantSent waits until the queue has answered for the first n lines of the shipped export.
func wantSent(t *testing.T, look *zq.Inspector, n int) {
	t.Helper()
	var want int64
	for _, err := range events.Read(bytes.NewReader(lines(t, 0, n))) {
		if err == nil {
			want++
		}
	}
	zqtest.Eventually(t, patience, func() bool {
		c, err := look.Counters(t.Context())
		return err == nil && c.Enqueued+c.Duplicates == want
	}, "the queue's answer for all lines")
}

// lines gives some lines of the shipped export.
func lines(t *testing.T, from, to int) []byte {
	t.Helper()
	all := bytes.SplitAfter(shipped, []byte("\n"))
	return bytes.Join(all[from:to], nil)
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
