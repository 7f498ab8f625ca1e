package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// running is a run of the program that the test feeds and stops.
type running struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   bytes.Buffer
	log   []string
	lines chan string // of stderr; closed at its end
}

func (p program) start(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	r := &running{cmd: exec.CommandContext(ctx, string(p), args...), lines: make(chan string, 1000)}
	r.cmd.Stdout = &r.out
	var err error
	if r.stdin, err = r.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stderr, err := r.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the program's output
		defer close(r.lines)
		for in := bufio.NewScanner(stderr); in.Scan(); {
			r.lines <- in.Text()
		}
	}()
	return r
}

// feed writes lines of the shipped export to the program's stdin, which stays open.
func (r *running) feed(t *testing.T, from, to int) {
	t.Helper()
	if _, err := r.stdin.Write(lines(t, from, to)); err != nil {
		t.Fatalf("the program reads no more: %v", err)
	}
}

func (r *running) expect(t *testing.T, line string) {
	t.Helper()
	r.expectAny(t, func(text string) bool { return text == line }, line)
}

// expectAny waits for a line of stderr that fits.
func (r *running) expectAny(t *testing.T, fits func(string) bool, what string) {
	t.Helper()
	for text := range r.lines {
		if r.log = append(r.log, text); fits(text) {
			return
		}
	}
	t.Fatalf("the program ended without saying %q:\n%s", what, strings.Join(r.log, "\n"))
}

func (r *running) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func (r *running) wait(t *testing.T) result {
	t.Helper()
	for text := range r.lines { // to its end, before Wait closes the pipe
		r.log = append(r.log, text)
	}
	_ = r.cmd.Wait() // the outcome is in ProcessState
	return result{r.cmd.ProcessState.ExitCode(), r.out.String(), strings.Join(r.log, "\n")}
}
