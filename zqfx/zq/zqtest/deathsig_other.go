//go:build !linux

package zqtest

import "os/exec"

// dieWithParent does nothing here: only Linux offers it. t.Cleanup and Main
// still stop what they started unless the test process is killed.
func dieWithParent(*exec.Cmd) {}

// stopped trusts the signal here: there is no portable way to look.
func stopped(int) bool { return true }
