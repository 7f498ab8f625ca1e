package metrics_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var nameLine = regexp.MustCompile(`= "((?:messaging|error)\.[a-z_.]+)"`)

// The page has every name there is.
func TestTelemetryPageNamesAll(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../internal/semconv/*.go")
	if err != nil {
		t.Fatal(err)
	}
	names := 0
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // the sources of this module
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range nameLine.FindAllStringSubmatch(string(text), -1) {
			if names++; !strings.Contains(string(page), "`"+m[1]+"`") {
				t.Errorf("docs/telemetry.md has no %s", m[1])
			}
		}
	}
	if names < 40 {
		t.Errorf("only %d names found in the sources", names)
	}
}
