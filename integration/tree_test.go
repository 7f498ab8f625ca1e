// Package integration_test checks the project from outside: its promises on real servers,
// and, in the tests named TestTree, its own sources.
package integration_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

const module = "github.com/zqueue/zqueue"

// maxText is far above any source; what is larger is data.
const maxText = 4 << 20

// source is one file of the project.
type source struct {
	path string // from the project's root, with slashes
	text string
}

func (s source) is(ext string) bool { return path.Ext(s.path) == ext }

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

var generatedLine = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// isGenerated goes by the convention of the go command.
func (s source) isGenerated() bool { return s.is(".go") && generatedLine.MatchString(s.text) }

// tree reads the project's files, nested modules included.
func tree(t *testing.T) []source {
	t.Helper()
	root := os.DirFS("..")
	var files []source
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipDir(name)
		}
		if info, err := d.Info(); err != nil || !info.Mode().IsRegular() || info.Size() > maxText {
			return err
		}
		text, err := fs.ReadFile(root, name)
		files = append(files, source{name, string(text)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 10 {
		t.Fatalf("only %d files found: a check of nothing passes", len(files))
	}
	return files
}

// skipDir passes over what is not the project's own.
func skipDir(name string) error {
	switch path.Base(name) {
	case ".git", ".task", ".idea", ".vscode", "bin", "node_modules":
		return fs.SkipDir
	}
	return nil
}

// goFiles are the files that people write; testdata is input, not code.
func goFiles(t *testing.T) []source {
	t.Helper()
	var files []source
	for _, s := range tree(t) {
		if s.is(".go") && !s.isGenerated() && !strings.Contains("/"+s.path, "/testdata/") {
			files = append(files, s)
		}
	}
	return files
}

// report fails with all offenders, so that one run shows all there is to mend.
func report(t *testing.T, offenders []string) {
	t.Helper()
	if len(offenders) > 0 {
		t.Errorf("%d offenders:\n  %s", len(offenders), strings.Join(offenders, "\n  "))
	}
}
