package zqtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// dieWithParent has the kernel kill the process when its parent dies, so that
// nothing outlives a test that was itself killed.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// stopped reports whether every thread of pid stands still. SIGSTOP reaches
// the threads one by one; a test that goes on too early sees a live one.
func stopped(pid int) bool {
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(stats) == 0 {
		return false
	}
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		// pid (comm) state …; comm may hold anything, a ')' included
		_, state, found := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
		if !found || len(state) == 0 || state[0] != 'T' {
			return false
		}
	}
	return true
}
