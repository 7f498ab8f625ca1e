//go:build mutants

package mutants

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

const (
	scriptDir = "../../zqfx/zq/internal/script"
	// killers are the tests that a mutant of the scripts has to get past.
	killers   = "^Test(ModelAgrees|Edges|EdgeChunks|SessionOfCalls)$"
	patience  = 2 * time.Minute
	scriptEnv = "ZQ_TEST_SCRIPTS"
)

// TestScriptMutantsAreKilled builds the script package's tests once and runs them against each mutant.
func TestScriptMutantsAreKilled(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "script.test")
	build := exec.Command("go", "test", "-c", "-o", binary, ".")
	build.Dir = scriptDir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	if out, err := runScriptTests(t, binary, ""); err != nil {
		t.Fatalf("without any mutant: %v\n%s", err, lastLines(out, 20))
	}
	slots := make(chan struct{}, runtime.NumCPU())
	for _, m := range scriptMutants() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			dir := filepath.Join(t.TempDir(), "scripts")
			if err := os.CopyFS(filepath.Join(dir, "lua"), os.DirFS(filepath.Join(scriptDir, "lua"))); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, m.file), []byte(m.apply(t, scriptDir)), 0o600); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if out, err := runScriptTests(t, binary, dir); err == nil {
				t.Errorf("lives: %s → %s\n%s", m.old, m.new, lastLines(out, 3))
			}
			t.Logf("killed after %v", time.Since(began).Round(time.Millisecond))
		})
	}
}

func runScriptTests(t *testing.T, binary, dir string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	run := exec.CommandContext(ctx, binary, "-test.run", killers, "-test.failfast", "-rapid.shrinktime=0s", "-rapid.nofailfile")
	run.Dir = scriptDir
	if dir != "" {
		run.Env = append(os.Environ(), scriptEnv+"="+dir)
	}
	return run.CombinedOutput()
}
