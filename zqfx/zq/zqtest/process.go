package zqtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// patience bounds every wait for a process: long enough for a loaded machine
// under the race detector, short enough to beat go test's own timeout.
const patience = 20 * time.Second

// errUnsupported is what a signal gives on an OS that has none.
var errUnsupported = errors.New("zqtest: this operating system cannot pause a process")

// process is an operating system process that this package started. It is
// only ever signalled through its own handle, so a reused pid is never hit.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process is gone and reaped
}

// startProcess starts cmd and a goroutine that waits for it; the goroutine
// ends with the process.
func startProcess(cmd *exec.Cmd) (*process, error) {
	dieWithParent(cmd)
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(p.done)
		// Linux sends the parent-death signal when the thread that forked
		// ends, so that thread must live as long as the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the outcome is in cmd.ProcessState
		}
	}()
	if err := <-started; err != nil {
		<-p.done
		return nil, err
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// alive reports whether the process has not been reaped yet.
func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// exitCode is the code of a process that has ended, -1 if a signal ended it.
func (p *process) exitCode() int { return p.cmd.ProcessState.ExitCode() }

// wait reports whether the process ended within limit.
func (p *process) wait(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}

// terminate asks the process to end and kills it after grace. A paused one
// ends as well: SIGTERM is pending when SIGCONT wakes it.
func (p *process) terminate(grace time.Duration) error {
	asked := p.signal(sigTerm) == nil
	_ = p.signal(sigCont)
	if asked && p.wait(grace) {
		return nil
	}
	return p.kill()
}

// kill ends the process at once, paused or not, and waits until it is gone.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if !p.wait(patience) {
		return fmt.Errorf("zqtest: process %d is still there %v after SIGKILL", p.pid(), patience)
	}
	return nil
}

// pause returns when every thread of the process stands still.
func (p *process) pause() error {
	if err := p.signal(sigStop); err != nil {
		return err
	}
	if !poll(patience, func() bool { return stopped(p.pid()) }) {
		return fmt.Errorf("zqtest: process %d does not stop", p.pid())
	}
	return nil
}

func (p *process) resume() error { return p.signal(sigCont) }

func (p *process) signal(sig os.Signal) error {
	if sig == nil {
		return errUnsupported
	}
	return p.cmd.Process.Signal(sig)
}
