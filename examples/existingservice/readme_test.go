// Package existingservice_test holds the README to the programs.
package existingservice_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var diffBlock = regexp.MustCompile("(?ms)^```diff\n--- (\\S+)\n\\+\\+\\+ (\\S+)\n(.*?)^```$")

// What the README shows as the difference is one: each line is where it says, and not where it says not.
func TestReadmeShowsTheDifference(t *testing.T) {
	t.Parallel()
	blocks := diffBlock.FindAllStringSubmatch(read(t, "README.md"), -1)
	if len(blocks) != 2 {
		t.Fatalf("%d differences in the README", len(blocks))
	}
	for _, b := range blocks {
		before, after := linesOf(t, b[1]), linesOf(t, b[2])
		for line := range strings.Lines(b[3]) {
			mark, text := line[0], strings.TrimSuffix(line[1:], "\n")
			if got, want := slices.Contains(before, text), mark != '+'; got != want && !common[text] {
				t.Errorf("%s has %q: %t", b[1], text, got)
			}
			if got, want := slices.Contains(after, text), mark != '-'; got != want {
				t.Errorf("%s has %q: %t", b[2], text, got)
			}
		}
	}
}

// common lines are in any program.
var common = map[string]bool{"\tif err != nil {": true, "\t\treturn err": true, "\t}": true}

func linesOf(t *testing.T, file string) []string {
	t.Helper()
	return strings.Split(read(t, file), "\n")
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
