package zqtest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

func TestChildRunsItsFunctionWithItsEnvironment(t *testing.T) {
	t.Parallel()
	p := zqtest.Child(t, "ticker", "ZQTEST_GREETING=there")
	if got := p.Expect("hello", limit); got != "hello there" {
		t.Errorf("got %q", got)
	}
	p.Expect("tick 3", limit)
	p.Terminate()
	p.Expect("done", limit)
	if code := p.Wait(limit); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestChildKill(t *testing.T) {
	t.Parallel()
	p := zqtest.Child(t, "ticker")
	p.Expect("tick", limit)
	p.Kill()
	if code := p.Wait(limit); code != -1 {
		t.Errorf("exit code %d, want -1", code)
	}
	for range p.Lines() {
	} // ends: the output has
	if out := p.Output(); out[len(out)-1] == "done" {
		t.Error("the child had time to say goodbye")
	}
	p.Kill()
}

func TestChildPauseAndResume(t *testing.T) {
	t.Parallel()
	p := zqtest.Child(t, "ticker")
	p.Expect("tick", limit)
	p.Pause()
	// Standing still is proved by SIGTERM: it stays pending until Resume.
	p.Terminate()
	wantComplaint(t, failing(t, func(t testing.TB) {
		zqtest.Eventually(t, 50*time.Millisecond, func() bool {
			return strings.Contains(strings.Join(p.Output(), "\n"), "done")
		}, "the end of a paused child")
	}), "not within")
	p.Resume()
	p.Expect("done", limit)
}

func TestChildKilledWhilePaused(t *testing.T) {
	t.Parallel()
	p := zqtest.Child(t, "ticker")
	p.Expect("tick", limit)
	p.Pause()
	p.Kill()
}

func TestChildExitCodeAndTornLastLine(t *testing.T) {
	t.Parallel()
	p := zqtest.Child(t, "exit")
	if code := p.Wait(limit); code != 3 {
		t.Errorf("exit code %d", code)
	}
	if got := strings.Join(p.Output(), "|"); got != "bye|torn" {
		t.Errorf("output %q", got)
	}
}

func TestChildNeverWaitsForItsReader(t *testing.T) {
	t.Parallel()
	p := zqtest.Child(t, "flood")
	if code := p.Wait(limit); code != 0 {
		t.Errorf("exit code %d", code)
	}
	n := 0
	for line := range p.Lines() {
		if line != fmt.Sprint("line ", n) {
			t.Fatalf("line %d is %q", n, line)
		}
		n++
	}
	if n != 50_000 {
		t.Errorf("%d lines", n)
	}
}

func TestUnknownChildSaysSo(t *testing.T) {
	t.Parallel()
	complaint := failing(t, func(t testing.TB) {
		p := zqtest.Child(t, "nobody")
		p.Expect("hello", limit)
	})
	wantComplaint(t, complaint, "ended without a line", `no child "nobody" is registered`)
}

func TestRaceInAKilledChildFailsTheTest(t *testing.T) {
	t.Parallel()
	complaint := failing(t, func(t testing.TB) {
		p := zqtest.Child(t, "racy")
		p.Expect("tick", limit)
		p.Kill()
	})
	wantComplaint(t, complaint, "child racy has a data race")
}

func TestChildEventsReachTheRecorder(t *testing.T) {
	t.Parallel()
	var r zqtest.Recorder
	r.Add(zqtest.Event{Op: zqtest.Enqueued, ID: "a", Key: "k", Seq: 1})
	p := zqtest.Child(t, "events")
	p.Wait(limit)
	if n := r.AddLines(p.Output()); n != 2 {
		t.Errorf("%d events", n)
	}
	zqtest.NoViolations(t, r.CheckOrder(), r.CheckAllDone("a"), r.CheckOnce(), r.CheckOneHolder(), r.CheckAckFinal())
}
