package zqtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// childEnv tells a test binary which child it is.
const childEnv = "ZQTEST_CHILD"

// children are the functions that a child process can run. House style bans
// package state; a process that was started anew can find its function by a
// name only, and RunChild has no other place to look.
var children sync.Map // name → func()

// RegisterChild names a function for [Child] to run in a process of its own.
// Call it in TestMain ahead of [Main]. A name taken twice panics, against house
// style: in TestMain there is no t to fail.
func RegisterChild(name string, run func()) {
	if _, taken := children.LoadOrStore(name, run); taken {
		panic("zqtest: child " + name + " is registered twice")
	}
}

// RunChild runs the registered function and exits if this process is a
// [Child]; otherwise it does nothing. [Main] calls it; a TestMain without Main
// calls it first.
func RunChild() {
	name, is := os.LookupEnv(childEnv)
	if !is {
		return
	}
	run, found := children.Load(name)
	if !found {
		fmt.Fprintf(os.Stderr, "zqtest: no child %q is registered\n", name)
		os.Exit(2)
	}
	run.(func())()
	os.Exit(0)
}

// Child starts this test binary again as a process of its own that runs the
// function registered under name, with env ("KEY=value") added to its
// environment. It is killed when the test ends, and on Linux when the test
// process dies. What it writes to stderr is logged if the test fails; a report
// of the race detector there fails it. A child has no children.
func Child(t testing.TB, name string, env ...string) *Process {
	t.Helper()
	if _, is := os.LookupEnv(childEnv); is {
		t.Fatal("zqtest: a child process must not start another")
	}
	p, err := startChild(filepath.Join(t.TempDir(), "stderr"), name, env)
	if err != nil {
		t.Fatalf("zqtest: child %s: %v", name, err)
	}
	p.t = t
	t.Cleanup(p.cleanup)
	return p
}

func startChild(stderrPath, name string, env []string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	stderr, err := os.Create(stderrPath)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stderr.Close() }() // the child has its own handle
	// Read by hand: exec's own pipe would be closed ahead of the last lines.
	stdout, childEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = childEnd.Close() }() // likewise
	// No test matches ^$: a binary that forgot RunChild does nothing, rather
	// than run its tests, this one included, over and over.
	cmd := exec.Command(self, "-test.run=^$")
	cmd.Env = append(append(os.Environ(), env...), childEnv+"="+name)
	cmd.Stdout, cmd.Stderr = childEnd, stderr
	proc, err := startProcess(cmd)
	if err != nil {
		_ = stdout.Close()
		return nil, err
	}
	return &Process{name: name, proc: proc, stderrPath: stderrPath, out: readOutput(stdout)}, nil
}
