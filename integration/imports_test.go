package integration_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// importRule forbids imports. The same rules stand in .golangci.yml: change both or neither.
// This test also sees the nested modules and files behind build tags, which a lint run does not.
type importRule struct {
	name   string
	covers func(source) bool
	deny   []string // a path and all below it; a $ at the end means this path alone
}

const (
	zqtest   = module + "/zqfx/zq/zqtest"
	zqfxtest = module + "/zqfx/zqfxtest"
)

// The way is one: adapters, then zqfx, then middleware, then zq.
var importRules = []importRule{
	{
		name:   "core",
		covers: func(s source) bool { return s.below("zqfx/zq") },
		deny: []string{
			"go.opentelemetry.io",
			"github.com/cenkalti/backoff",
			module + "/middleware",
			module + "/adapters",
			module + "/zqfx$",
		},
	},
	{
		name:   "middleware",
		covers: func(s source) bool { return s.below("middleware") },
		deny:   []string{module + "/zqfx$", module + "/adapters"},
	},
	{
		name:   "wiring",
		covers: func(s source) bool { return path.Dir(s.path) == "zqfx" },
		deny:   []string{module + "/adapters"},
	},
	{
		name: "fx",
		// Programs that use fx, and their tests, are what zqfx is for.
		covers: func(s source) bool {
			return path.Dir(s.path) != "zqfx" && !s.below("zqfx/zqfxtest") && !s.below("examples") && !s.below("integration")
		},
		deny: []string{"go.uber.org/fx"},
	},
	{
		name: "zqtest",
		// An example runs on the embedded Redis when it is given no other.
		covers: func(s source) bool {
			return !s.isTest() && !s.below("zqfx/zq/zqtest") && !s.below("zqfx/zqfxtest") && !s.below("examples")
		},
		deny: []string{zqtest, zqfxtest},
	},
	{
		name:   "programs",
		covers: func(s source) bool { return !s.below("examples") && !s.below("integration") },
		deny:   []string{module + "/examples", module + "/integration"},
	},
}

func (s source) below(dir string) bool { return strings.HasPrefix(s.path, dir+"/") }

func TestTreeImports(t *testing.T) {
	t.Parallel()
	var offenders []string
	for _, s := range goFiles(t) {
		found, err := forbiddenImports(s)
		if err != nil {
			t.Error(err)
		}
		offenders = append(offenders, found...)
	}
	report(t, offenders)
}

// A check that cannot fail is none: made-up files show that each rule bites, and where it ends.
func TestTreeImportsCatches(t *testing.T) {
	t.Parallel()
	cases := []struct {
		path, imports string
		rule          string // none: allowed
	}{
		{"zqfx/zq/producer.go", "go.uber.org/fx", "fx"},
		{"zqfx/zq/producer_test.go", "go.uber.org/fx/fxtest", "fx"},
		{"zqfx/zq/producer.go", "go.uber.org/goleak", ""},
		{"zqfx/zq/producer.go", "go.opentelemetry.io/otel/trace", "core"},
		{"zqfx/zq/internal/wake/wake.go", "github.com/cenkalti/backoff/v4", "core"},
		{"zqfx/zq/consumer.go", module + "/middleware/retry", "core"},
		{"zqfx/zq/consumer_test.go", module + "/middleware", "core"},
		{"zqfx/zq/consumer.go", module + "/adapters/console", "core"},
		{"zqfx/zq/consumer.go", module + "/zqfx", "core"},
		{"zqfx/zq/consumer.go", module + "/zqfx/zq/internal/keys", ""},
		{"zqfx/zq/consumer.go", zqtest, "zqtest"},
		{"zqfx/zq/consumer_test.go", zqtest, ""},
		{"zqfx/zq/zqtest/server.go", "github.com/alicebob/miniredis/v2", ""},
		{"middleware/standard.go", module + "/zqfx", "middleware"},
		{"middleware/retry/retry.go", module + "/zqfx/zq", ""},
		{"middleware/retry/retry.go", "github.com/cenkalti/backoff/v4", ""},
		{"middleware/retry/retry.go", "go.uber.org/fx", "fx"},
		{"middleware/retry/retry.go", module + "/adapters/workflow", "middleware"},
		{"middleware/retry/retry.go", zqtest, "zqtest"},
		{"zqfx/module.go", "go.uber.org/fx", ""},
		{"zqfx/zqfxtest/app.go", "go.uber.org/fx/fxtest", ""},
		{"zqfx/zqfxtest/app.go", zqtest, ""},
		{"zqfx/module.go", zqfxtest, "zqtest"},
		{"zqfx/module_test.go", zqfxtest, ""},
		{"zqfx/module.go", module + "/middleware", ""},
		{"zqfx/module.go", module + "/adapters/temporal", "wiring"},
		{"adapters/temporal/client.go", module + "/zqfx", ""},
		{"adapters/temporal/client.go", "go.uber.org/fx", "fx"},
		{"adapters/temporal/client.go", zqtest + "/history", "zqtest"},
		{"adapters/temporal/client.go", module + "/integration", "programs"},
		{"examples/quickstart/main.go", "go.uber.org/fx", ""},
		{"examples/quickstart/main.go", zqtest, ""},
		{"zqfx/app.go", module + "/examples/quickstart", "programs"},
	}
	for _, c := range cases {
		s := source{c.path, fmt.Sprintf("package p\n\nimport renamed %q\n", c.imports)}
		found, err := forbiddenImports(s)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		if c.rule != "" {
			want = []string{c.path + " imports " + c.imports + " (rule " + c.rule + ")"}
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("%s importing %s (-want +got):\n%s", c.path, c.imports, diff)
		}
	}
}

func TestTreeImportRulesAreTheLinters(t *testing.T) {
	t.Parallel()
	var ours, theirs []string
	for _, r := range importRules {
		for _, d := range r.deny {
			ours = append(ours, r.name+" denies "+d)
		}
	}
	for _, s := range tree(t) {
		if s.path == ".golangci.yml" {
			theirs = depguardDenials(s.text)
		}
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	if diff := cmp.Diff(ours, theirs); diff != "" {
		t.Errorf("rules here (-) and depguard's in .golangci.yml (+) differ:\n%s", diff)
	}
}

func forbiddenImports(s source) ([]string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), s.path, s.text, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		for _, r := range importRules {
			if r.covers(s) && slices.ContainsFunc(r.deny, func(d string) bool { return denies(d, imported) }) {
				found = append(found, s.path+" imports "+imported+" (rule "+r.name+")")
			}
		}
	}
	return found, nil
}

func denies(pattern, imported string) bool {
	if exact, ok := strings.CutSuffix(pattern, "$"); ok {
		return imported == exact
	}
	return imported == pattern || strings.HasPrefix(imported, pattern+"/")
}

var (
	ruleLine = regexp.MustCompile(`^ {8}([a-z]+):$`)
	denyLine = regexp.MustCompile(`^ +- pkg: (\S+)$`)
)

// depguardDenials reads the linter's file by its indentation: a YAML parser would be a dependency.
func depguardDenials(text string) []string {
	var rule string
	var found []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if m := ruleLine.FindStringSubmatch(line); m != nil {
			rule = m[1]
		}
		if m := denyLine.FindStringSubmatch(line); m != nil {
			found = append(found, rule+" denies "+m[1])
		}
	}
	return found
}
