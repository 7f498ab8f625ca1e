package progress

import (
	"os"
	"testing"
)

// A pseudo terminal is had by opening /dev/ptmx, which every Linux with devpts has.
func TestIsTerminalOfATerminal(t *testing.T) {
	t.Parallel()
	tty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal("a pseudo terminal is needed (mount devpts):", err)
	}
	defer func() { _ = tty.Close() }()
	if !isTerminal(tty) {
		t.Error("a pseudo terminal is one")
	}
}
