package zqtest_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// limit bounds every wait of these tests.
const limit = 20 * time.Second

func TestMain(m *testing.M) {
	zqtest.RegisterChild("ticker", ticker)
	zqtest.RegisterChild("exit", func() {
		say("bye")
		fmt.Fprint(os.Stdout, "torn")
		os.Exit(3)
	})
	zqtest.RegisterChild("events", func() {
		say(zqtest.Event{Op: zqtest.Started, ID: "a", Worker: "child"}.Line())
		say("some other line")
		say(zqtest.Event{Op: zqtest.Succeeded, ID: "a", Worker: "child"}.Line())
	})
	zqtest.RegisterChild("racy", func() {
		fmt.Fprintln(os.Stderr, "WARNING: DATA RACE")
		ticker()
	})
	zqtest.RegisterChild("flood", func() {
		for i := range 50_000 {
			say("line", i)
		}
	})
	os.Exit(zqtest.Main(m))
}

// say prints a line for the test that started this child.
func say(words ...any) { fmt.Fprintln(os.Stdout, words...) }

// ticker prints until it is asked to end.
func ticker() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	say("hello", os.Getenv("ZQTEST_GREETING"))
	for i := 0; ; i++ {
		select {
		case <-tick.C:
			say("tick", i)
		case <-ctx.Done():
			say("done")
			return
		}
	}
}

// fakeTB stands in for a test that is expected to fail.
type fakeTB struct {
	testing.TB // its name and directory

	mu       sync.Mutex
	log      []string
	failed   bool
	cleanups []func()
}

// failing runs f as a test and returns what it complained of, or "".
func failing(t *testing.T, f func(t testing.TB)) string {
	fake := &fakeTB{TB: t}
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer func() {
			for _, cleanup := range fake.cleanups {
				defer cleanup()
			}
		}()
		f(fake)
	}()
	zqtest.Wait(t, over, limit)
	if !fake.failed {
		return ""
	}
	return strings.Join(fake.log, "\n")
}

func (f *fakeTB) Helper() {}

func (f *fakeTB) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }

func (f *fakeTB) Failed() bool { return f.failed }

func (f *fakeTB) Logf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, fmt.Sprintf(format, args...))
}

func (f *fakeTB) Errorf(format string, args ...any) {
	f.Logf(format, args...)
	f.failed = true
}

func (f *fakeTB) Error(args ...any) { f.Errorf("%s", fmt.Sprint(args...)) }

func (f *fakeTB) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

func (f *fakeTB) Fatal(args ...any) { f.Fatalf("%s", fmt.Sprint(args...)) }

func wantComplaint(t *testing.T, got string, parts ...string) {
	t.Helper()
	if got == "" {
		t.Error("the test passed; it should have failed")
		return
	}
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("complaint %q does not mention %q", got, part)
		}
	}
}
