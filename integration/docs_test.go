package integration_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	fence    = regexp.MustCompile("(?ms)^```.*?^```$")
	codeSpan = regexp.MustCompile("`[^`\n]+`")
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	taskCall = regexp.MustCompile(`(?m)(?:^|\x60|tools/go\.mod )task ([a-z]+(?::[a-z]+)*)`)
	target   = regexp.MustCompile(`(?m)^ {2}([a-z]+(?::[a-z]+)*):$`)
)

// The pages name files and targets; both must be there.
func TestTreeDocs(t *testing.T) {
	t.Parallel()
	files := tree(t)
	exists := map[string]bool{}
	var targets []string
	for _, s := range files {
		for p := s.path; p != "."; p = path.Dir(p) {
			exists[p] = true
		}
		if s.path == "Taskfile.yml" {
			targets = targetsOf(s.text)
		}
	}
	var offenders []string
	for _, s := range files {
		if s.is(".md") {
			offenders = append(offenders, deadLinks(s, exists)...)
			offenders = append(offenders, unknownTargets(s, targets)...)
		}
	}
	report(t, offenders)
}

func TestTreeDocsCatches(t *testing.T) {
	t.Parallel()
	page := source{"docs/page.md", strings.Join([]string{
		"[there](other.md#part) [above](../README.md) [gone](gone.md) [web](https://go.dev) [here](#part)",
		"`f[T](x)`, run `task test:race` or `task sing`",
		"```",
		"x := fs[0](y)",
		"task test && go tool -modfile=tools/go.mod task dance:fast",
		"```",
		"a task waits",
	}, "\n")}
	exists := map[string]bool{"docs/other.md": true, "README.md": true}
	targets := targetsOf("version: '3'\ntasks:\n  test:\n    desc: tests\n  test:race:\n    cmd: go test -race\n")

	got := append(deadLinks(page, exists), unknownTargets(page, targets)...)
	want := []string{
		"docs/page.md links to gone.md",
		"docs/page.md names the target dance:fast",
		"docs/page.md names the target sing",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// goBlock is a piece of Go in a page.
var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// What the README shows is compiled and run: each piece of Go stands in a program of this tree.
func TestTreeReadmeCompiles(t *testing.T) {
	t.Parallel()
	var readme source
	var programs []source
	for _, s := range tree(t) {
		switch {
		case s.path == "README.md":
			readme = s
		case s.is(".go") && s.below("examples"):
			programs = append(programs, s)
		}
	}
	if len(goBlock.FindAllString(readme.text, -1)) < 2 {
		t.Fatal("the README shows no Go: a check of nothing passes")
	}
	report(t, strangeBlocks(readme, programs))
}

func TestTreeReadmeCompilesCatches(t *testing.T) {
	t.Parallel()
	page := source{"README.md", "```go\nfunc a() {}\n```\n\n```go\nfunc b() {}\n```\n"}
	got := strangeBlocks(page, []source{{"examples/a/main.go", "package main\n\nfunc a() {}\n"}})
	if diff := cmp.Diff([]string{"README.md shows Go that is in no example: func b() {}"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func strangeBlocks(page source, programs []source) []string {
	var found []string
	for _, m := range goBlock.FindAllStringSubmatch(page.text, -1) {
		if !slices.ContainsFunc(programs, func(s source) bool { return strings.Contains(s.text, m[1]) }) {
			first, _, _ := strings.Cut(m[1], "\n")
			found = append(found, page.path+" shows Go that is in no example: "+first)
		}
	}
	return found
}

var (
	namedTest   = regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	definedTest = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
)

// A page that says which test proves something names one that is there.
func TestTreeDocsNameTests(t *testing.T) {
	t.Parallel()
	files, defined := tree(t), map[string]bool{}
	for _, s := range files {
		if strings.HasSuffix(s.path, "_test.go") {
			for _, m := range definedTest.FindAllStringSubmatch(s.text, -1) {
				defined[m[1]] = true
			}
		}
	}
	if len(defined) < 100 {
		t.Fatalf("%d tests found: a check of nothing passes", len(defined))
	}
	var offenders []string
	for _, s := range files {
		if s.is(".md") {
			offenders = append(offenders, unknownTests(s, defined)...)
		}
	}
	report(t, offenders)
}

func TestTreeDocsNameTestsCatches(t *testing.T) {
	t.Parallel()
	page := source{"docs/page.md", "`TestThere`, `TestGone` and `go test -run TestAny`"}
	got := unknownTests(page, map[string]bool{"TestThere": true})
	if diff := cmp.Diff([]string{"docs/page.md names the test TestGone"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func unknownTests(page source, defined map[string]bool) []string {
	var found []string
	for _, m := range namedTest.FindAllStringSubmatch(page.text, -1) {
		if !defined[m[1]] {
			found = append(found, page.path+" names the test "+m[1])
		}
	}
	return found
}

func deadLinks(page source, exists map[string]bool) []string {
	prose := codeSpan.ReplaceAllString(fence.ReplaceAllString(page.text, ""), "")
	var found []string
	for _, m := range link.FindAllStringSubmatch(prose, -1) {
		to, _, _ := strings.Cut(m[1], "#")
		if to == "" || strings.Contains(to, ":") {
			continue
		}
		if !exists[path.Join(path.Dir(page.path), to)] {
			found = append(found, page.path+" links to "+to)
		}
	}
	return found
}

func unknownTargets(page source, targets []string) []string {
	code := append(fence.FindAllString(page.text, -1), codeSpan.FindAllString(page.text, -1)...)
	var found []string
	for _, m := range taskCall.FindAllStringSubmatch(strings.Join(code, "\n"), -1) {
		if !slices.Contains(targets, m[1]) {
			found = append(found, page.path+" names the target "+m[1])
		}
	}
	return slices.Compact(found)
}

func targetsOf(taskfile string) []string {
	var names []string
	for _, m := range target.FindAllStringSubmatch(taskfile, -1) {
		names = append(names, m[1])
	}
	return names
}
