package script_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// fewestSteps is what a run must have done to count.
const fewestSteps = 20_000

// TestModelAgrees drives the scripts on a real redis-server beside the model. A failure prints the flags
// that repeat it; -rapid.checks=5000 makes a long run.
func TestModelAgrees(t *testing.T) {
	t.Parallel()
	rdb := zqtest.Redis(t).Client()
	steps, reached := 0, map[string]int{}
	for steps < fewestSteps {
		more := driveModel(t, rdb, 0)
		steps += more.steps
		for what, n := range more.reached {
			reached[what] += n
		}
	}
	t.Logf("%d steps reached %v", steps, reached)
	if steps < fewestSteps {
		t.Errorf("%d steps, want %d at least", steps, fewestSteps)
	}
	for _, what := range everywhere() {
		if reached[what] == 0 {
			t.Errorf("no run came to %q", what)
		}
	}
}

// driveModel makes as many runs as rapid is told to, but none after most steps; 0 is without an end. It gives
// the sum of what happened.
func driveModel(t *testing.T, rdb *redis.Client, most int) machine {
	t.Helper()
	set, sum := virtualSet(), machine{reached: map[string]int{}}
	rapid.Check(t, func(rt *rapid.T) {
		if most > 0 && sum.steps >= most {
			return
		}
		if err := rdb.FlushDB(t.Context()).Err(); err != nil {
			rt.Fatalf("flush: %v", err)
		}
		x, err := newMachine(newStore(t.Context(), rdb, set, "model"))
		if err != nil {
			rt.Fatalf("clock: %v", err)
		}
		for range 4 {
			rt.Repeat(x.actions())
		}
		sum.steps += x.steps
		for what, n := range x.reached {
			sum.reached[what] += n
		}
	})
	return sum
}

// everywhere is where a run must have been to prove anything.
func everywhere() []string {
	return []string{
		"claim empty", "claim paused", "claim repeat", "claim served", "claim suspect", "key held", "key delayed",
		"key suspect", "key halted", "key dying", "several alone", "lossy", "dead of attempts", "dead of key", "dead of lost",
		"settle applied", "settle repeat", "settle lost", "settle effect refused", "replayed", "token repeated", "late", "checkpoint",
	}
}
