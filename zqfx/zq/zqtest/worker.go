package zqtest

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

// Process is a child process of a test. Call its methods from the goroutine of
// the test; each ends, at the latest, in a failed test.
type Process struct {
	t          testing.TB
	name       string
	proc       *process
	stderrPath string
	out        *output
}

// Pid is the child's process id.
func (p *Process) Pid() int { return p.proc.pid() }

// Lines gives what the child writes to stdout, line by line, and is closed at
// its end. Lines that nobody takes are kept, so the child never waits.
func (p *Process) Lines() <-chan string { return p.out.lines }

// Output is every line that the child has written so far, taken or not. After
// Kill or Wait it is complete.
func (p *Process) Output() []string { return p.out.all() }

// Expect takes lines until one starts with prefix and returns that one. It
// fails the test if none has come within timeout or the child's output ends.
func (p *Process) Expect(prefix string, timeout time.Duration) string {
	p.t.Helper()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		select {
		case line, more := <-p.out.lines:
			if !more {
				p.t.Fatalf("zqtest: child %s ended without a line %q "+
					"(does TestMain call zqtest.Main or RunChild?)", p.name, prefix)
			}
			if strings.HasPrefix(line, prefix) {
				return line
			}
		case <-timer.C:
			p.t.Fatalf("zqtest: child %s: no line %q within %v", p.name, prefix, timeout)
		}
	}
}

// Kill ends the child with SIGKILL, paused or not, and returns when it is gone
// and its output complete. One that has ended already is left alone.
func (p *Process) Kill() {
	p.t.Helper()
	p.must(p.proc.kill())
	p.drained()
}

// Terminate sends the child SIGTERM, the polite request to shut down.
func (p *Process) Terminate() {
	p.t.Helper()
	p.must(p.proc.signal(sigTerm))
}

// Pause stops the child with SIGSTOP and returns when all of it stands still.
func (p *Process) Pause() {
	p.t.Helper()
	p.must(p.proc.pause())
}

// Resume lets a paused child go on.
func (p *Process) Resume() {
	p.t.Helper()
	p.must(p.proc.resume())
}

// Wait returns the exit code of the child, -1 if a signal ended it, and fails
// the test if it is still running after timeout.
func (p *Process) Wait(timeout time.Duration) int {
	p.t.Helper()
	if !p.proc.wait(timeout) {
		p.t.Fatalf("zqtest: child %s still runs after %v", p.name, timeout)
	}
	p.drained()
	return p.proc.exitCode()
}

// drained waits for the last line of a child that has ended.
func (p *Process) drained() {
	p.t.Helper()
	Wait(p.t, p.out.ended, patience)
}

// cleanup leaves nothing of the child and shows what it complained of.
func (p *Process) cleanup() {
	p.must(p.proc.kill())
	p.out.close()
	stderr, err := os.ReadFile(p.stderrPath)
	switch {
	case err != nil:
		p.t.Errorf("zqtest: stderr of child %s: %v", p.name, err)
	case bytes.Contains(stderr, []byte("WARNING: DATA RACE")):
		// A child that is killed has no exit code to tell of it.
		p.t.Errorf("zqtest: child %s has a data race:\n%s", p.name, stderr)
	case p.t.Failed() && len(stderr) > 0:
		p.t.Logf("stderr of child %s:\n%s", p.name, stderr)
	}
}

func (p *Process) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatalf("zqtest: child %s: %v", p.name, err)
	}
}
