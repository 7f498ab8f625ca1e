package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// Go's test cache does not see the redis-server: run this with -count=1.
func TestMain(m *testing.M) { os.Exit(zqtest.Main(m)) }

func runIt(t *testing.T, args ...string) (status int, out, log string) {
	t.Helper()
	var o, l bytes.Buffer
	status = run(args, &o, &l)
	return status, o.String(), l.String()
}

func wantBooks(t *testing.T, status int, out, log string, halted bool) {
	t.Helper()
	if status != 0 || log != "" {
		t.Errorf("exit status %d, log:\n%s", status, log)
	}
	for _, line := range []string{"account-1      115.50  20 postings", "account-3    -9892.50  20 postings", "every posting was applied once"} {
		if !strings.Contains(out, line) {
			t.Errorf("no %q in:\n%s", line, out)
		}
	}
	if got := strings.Contains(out, "halted: account-3 has 1450 cents, posting 8 takes 1000000"); got != halted {
		t.Errorf("halted %t, want %t:\n%s", got, halted, out)
	}
}

func TestOnRedis(t *testing.T) {
	t.Parallel()
	server, queue := zqtest.Shared(t), zqtest.Queue(t)
	status, out, log := runIt(t, "-redis", server.URL(), "-queue", queue)
	wantBooks(t, status, out, log, true)

	// Nothing of a second run counts again.
	status, out, log = runIt(t, "-redis", server.URL(), "-queue", queue)
	wantBooks(t, status, out, log, false)
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	status, out, log := runIt(t)
	wantBooks(t, status, out, log, true)
}

// The exit status tells of books that do not agree.
func TestWrongBooksAreFound(t *testing.T) {
	t.Parallel()
	server, queue := zqtest.Shared(t), zqtest.Queue(t)
	if status, out, log := runIt(t, "-redis", server.URL(), "-queue", queue); status != 0 {
		t.Fatalf("%d %s %s", status, out, log)
	}
	if err := server.Client().HIncrBy(context.Background(), zq.EffectKey(queue, balances), "account-2", 1).Err(); err != nil {
		t.Fatal(err)
	}
	status, _, log := runIt(t, "-redis", server.URL(), "-queue", queue)
	if status != 1 || !strings.Contains(log, "account-2: balance 11551, want 11550") {
		t.Errorf("exit status %d, log:\n%s", status, log)
	}
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-redis", "http://user:s3cret@x"}, {"-queue", "no space"}} {
		status, _, log := runIt(t, args...)
		if status != 1 || strings.Contains(log, "s3cret") || log == "" {
			t.Errorf("%v: exit status %d, log:\n%s", args, status, log)
		}
	}
}
