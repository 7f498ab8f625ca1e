//go:build mutants

package mutants

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mutant is one seeded bug: a text that stands exactly once in a file of the package, and what it becomes.
type mutant struct {
	name, file, old, new string
}

// apply gives the file's text with the bug. A mutant whose text has gone proves nothing, and is told.
func (m mutant) apply(t *testing.T, root string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		t.Fatalf("%s has the text to change %d times, want once: %s", m.file, n, m.old)
	}
	return strings.Replace(string(text), m.old, m.new, 1)
}

// lastLines is the end of an output, for a report.
func lastLines(out []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
