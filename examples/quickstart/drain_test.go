package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// checkDrains stops a run while an event is at work, whose chain waits for an answer of Redis: the event is finished
// before the last word is said, and the program ends before the rest of stdin comes.
func checkDrains(t *testing.T, p program) {
	server, queue := zqtest.Shared(t), zqtest.Queue(t)
	proxy := zqtest.Proxy(t, server.Addr())
	id := eventID(t, 19)
	held := proxy.HoldReply(func(cmd []string) bool { return named(cmd, id) && named(cmd, chainKeys) })
	r := p.start(t, "-redis", "redis://"+proxy.Addr(), "-queue", queue, "-file", "-")
	r.feed(t, 0, 19)
	wantAcked(t, server, queue, 19)
	r.feed(t, 19, 20)
	zqtest.Wait(t, held.Done(), patience)
	r.signal(t, syscall.SIGTERM)
	r.expect(t, "events: 19") // nothing is sent any more, and the consumers drain
	held.Release()
	r.wait(t).want(t, statusInterrupted, "interrupted: 20 events processed, 0 wait in queue "+queue)
}

// checkImpatient interrupts a run that cannot drain, for its Redis does not answer, and then once more.
func checkImpatient(t *testing.T, p program) {
	server, queue := zqtest.Shared(t), zqtest.Queue(t)
	proxy := zqtest.Proxy(t, server.Addr())
	frozen := proxy.HoldReply(fromSettling(eventID(t, 19)))
	r := p.start(t, "-redis", "redis://"+proxy.Addr(), "-queue", queue, "-file", "-")
	r.feed(t, 0, 20)
	zqtest.Wait(t, frozen.Done(), patience)
	r.signal(t, syscall.SIGTERM)
	// It has stopped sending, and waits for the handlers.
	r.expectAny(t, func(text string) bool { return strings.HasPrefix(text, "events: ") }, "events: …")
	r.signal(t, os.Interrupt)
	if got := r.wait(t); got.status != -1 {
		t.Errorf("exit status %d, want to see it ended by the second signal\n%s%s", got.status, got.out, got.log)
	}
}

// checkGivesUp lets the consumer end by itself: somebody with a newer library was at its queue.
func checkGivesUp(t *testing.T, p program) {
	server, queue := zqtest.Shared(t), zqtest.Queue(t)
	r := p.start(t, "-redis", server.URL(), "-queue", queue, "-file", "-")
	r.feed(t, 0, 20)
	wantAcked(t, server, queue, 20)
	if err := server.Client().HSet(t.Context(), "zq:{"+queue+"}:meta", "layout", 99).Err(); err != nil {
		t.Fatal(err)
	}
	got := r.wait(t) // stdin is still open
	got.want(t, statusBad)
	for _, text := range []string{"a consumer has ended", "newer layout", "the application gave up, with code 70"} {
		if !strings.Contains(got.log, text) {
			t.Errorf("no %q in\n%s", text, got.log)
		}
	}
}

// A process that may not consume would wait for ever.
func TestRefusesToRunWithoutConsumers(t *testing.T) {
	t.Setenv("ZQ_CONSUME", "false")
	var out, log bytes.Buffer
	if got := run(nil, strings.NewReader(""), &out, &log); got != statusBad || !strings.Contains(log.String(), "zqfx.Worker") {
		t.Errorf("exit status %d\n%s%s", got, &out, &log)
	}
}

// wantAcked waits until that many events are done.
func wantAcked(t *testing.T, server *zqtest.Server, queue string, n int64) {
	t.Helper()
	look := inspector(t, server, queue)
	zqtest.Eventually(t, patience, func() bool {
		c, err := look.Counters(t.Context())
		return err == nil && c.Acked == n
	}, "the ack of all events")
}

// chainKeys is in the names of the keys that the chain keeps.
const chainKeys = "zq:{idem/"

// named tells whether a word of the command holds the text.
func named(cmd []string, text string) bool {
	return slices.ContainsFunc(cmd, func(word string) bool { return strings.Contains(word, text) })
}
