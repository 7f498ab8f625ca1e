package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// Go's test cache sees neither the redis-server nor what the program does with it: run this with -count=1.
func TestMain(m *testing.M) { os.Exit(zqtest.Main(m)) }

// patience bounds a run of the program, which takes seconds.
const patience = 2 * time.Minute

// program is the built example.
type program string

// build builds the example as the test is built, that is with the race detector if the test has it.
func build(t *testing.T) program {
	t.Helper()
	path := filepath.Join(t.TempDir(), "quickstart.exe")
	args := []string{"build", "-buildvcs=false", "-o", path}
	if raced() {
		args = append(args, "-race")
	}
	if text, err := exec.CommandContext(t.Context(), "go", append(args, ".")...).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	return program(path)
}

func raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// result is what a run of the program left.
type result struct {
	status   int
	out, log string
}

// run runs the program to its end.
func (p program) run(t *testing.T, stdin io.Reader, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, string(p), args...)
	var out, log bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &log
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("%v, %v\n%s%s", err, ctx.Err(), &out, &log)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), log.String()}
}

// want fails the test unless the run has the exit status and its output all the texts.
func (r result) want(t *testing.T, status int, texts ...string) {
	t.Helper()
	if r.status != status {
		t.Errorf("exit status %d, want %d", r.status, status)
	}
	for _, text := range texts {
		if !strings.Contains(r.out, text) {
			t.Errorf("no %q in the output", text)
		}
	}
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", r.out, r.log)
	}
}

var row = regexp.MustCompile(`(?m)^ *([a-z][a-z_/ ]*?) {2,}([0-9,]+)(?: {2}.*)?$`)

// table reads the numbers of the table, but for the speed.
func (r result) table(t *testing.T) map[string]int {
	t.Helper()
	rows := make(map[string]int)
	text, _, there := strings.Cut(r.out, "jobs/s") // what follows has its own figures
	if !there {
		t.Errorf("no table in\n%s", r.out)
	}
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(strings.ReplaceAll(m[2], ",", ""))
		if err != nil {
			t.Fatal(err)
		}
		rows[m[1]] = n
	}
	return rows
}
