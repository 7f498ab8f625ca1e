package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// Go's test cache sees neither the redis-server nor redis-cli: run this with -count=1.
func TestMain(m *testing.M) { os.Exit(zqtest.Main(m)) }

// worked is what the program prints: by score, and of one score by the bytes of the member.
var worked = []string{
	`-3  "mail:on-call"`,
	`0.1  "mail:dave"`,
	`0.30000000000000004  "mail:\"quoted\" \\n 'twice'"`,
	`1.5  "mail:bea"`,
	`1.5  "mail:carol"`,
	`2  "mail:bob"`,
	`10  "mail:Zoë Müller, with spaces"`,
	`10  "mail:alice"`,
	`10  "mail:王小明"`,
	`1000  "mail:newsletter"`,
}

func TestByRedisCLI(t *testing.T) {
	t.Parallel()
	needCLI(t)
	server := zqtest.Shared(t)
	queue := zqtest.Queue(t)
	// What lies there already, from somebody else, has its place among them.
	text, err := exec.CommandContext(t.Context(), "redis-cli", "-u", server.URL(), "ZADD", "zq:{"+queue+"}:ready",
		"1.75", "another program's mail", "-inf", "first of all", "10", "mail:b").CombinedOutput()
	if err != nil || strings.TrimSpace(string(text)) != "3" {
		t.Fatalf("redis-cli: %v, %s", err, text)
	}
	want := append([]string{`-Inf  "first of all"`}, worked[:5]...)
	want = append(append(want, `1.75  "another program's mail"`), worked[5:8]...)
	want = append(append(want, `10  "mail:b"`), worked[8:]...)

	status, out, log := runIt(t, "-redis", server.URL(), "-queue", queue)
	wantRun(t, status, out, log, "put in by redis-cli:", "queue "+queue+" verifies clean and is empty")
	if diff := cmp.Diff(want, handled(out)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestByRedisCLIWithPasswordAndDatabase(t *testing.T) {
	t.Parallel()
	needCLI(t)
	server := zqtest.Redis(t, zqtest.WithConfig("requirepass", "s3cret"))
	address := strings.TrimSuffix(server.URL(), "/0") + "/3"
	status, out, log := runIt(t, "-redis", address)
	wantRun(t, status, out, log, "xxxxx@"+server.Addr()+"/3", "put in by redis-cli:", "'zq:{example-emails}:ready' -3 'mail:on-call'")
	if diff := cmp.Diff(worked, handled(out)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if strings.Contains(out+log, "s3cret") {
		t.Errorf("the password shows:\n%s%s", out, log)
	}
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	status, out, log := runIt(t)
	wantRun(t, status, out, log, "embedded in this program", "put in by go-redis", "queue example-emails verifies clean and is empty")
	if diff := cmp.Diff(worked, handled(out)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestProgram builds and starts it as a user does.
func TestProgram(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "plainredis.exe")
	if text, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	text, err := exec.CommandContext(t.Context(), path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if diff := cmp.Diff(worked, handled(string(text))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args   []string
		status int
		log    string
	}{
		{[]string{"-h"}, 0, "-queue"},
		{[]string{"-fast"}, 2, "not defined: -fast"},
		{[]string{"-redis", "redis://:s3cret@localhost:s3cret"}, 1, "-redis is no URL"},
		{[]string{"-redis", "redis://:s3cret@127.0.0.1:1"}, 1, "onnection"},
		{[]string{"-queue", "a/b"}, 1, `queue is "a/b"`},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			t.Parallel()
			status, out, log := runIt(t, tt.args...)
			if status != tt.status || !strings.Contains(log, tt.log) || strings.Contains(out+log, "s3cret") {
				t.Errorf("exit status %d\n%s\n%s", status, out, log)
			}
		})
	}
}

func needCLI(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Fatalf("this test needs redis-cli: %v\n\tDebian, Ubuntu: apt-get install redis-tools\n\tmacOS: brew install redis", err)
	}
}

func runIt(t *testing.T, args ...string) (status int, out, log string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status = run(args, &stdout, &stderr)
	return status, stdout.String(), stderr.String()
}

func wantRun(t *testing.T, status int, out, log string, texts ...string) {
	t.Helper()
	if status != 0 {
		t.Errorf("exit status %d", status)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("no %q in the output", text)
		}
	}
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", out, log)
	}
}

var handledLine = regexp.MustCompile(`(?m)^ *(\S+ {2}".*")$`)

// handled gives the lines that the handler printed.
func handled(out string) []string {
	var lines []string
	for _, m := range handledLine.FindAllStringSubmatch(out, -1) {
		lines = append(lines, m[1])
	}
	return lines
}
