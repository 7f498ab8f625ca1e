package script_test

import (
	"testing"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// The scripts do on the embedded Redis what they do on a real one, as far as demos and users' tests go.

func TestEmbeddedEdges(t *testing.T) {
	t.Parallel()
	for _, e := range edges() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t.Context(), zqtest.Embedded(t).Client(), virtualSet(), zqtest.Queue(t))
			s.at(t, epoch)
			e.run(t, s)
			s.clean(t)
		})
	}
}

// Its sorted sets are slow, so the largest numbers are left to the real one.
func TestEmbeddedChunks(t *testing.T) {
	t.Parallel()
	for _, c := range chunks() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rdb, set := zqtest.Embedded(t).Client(), virtualSet()
			for _, n := range counts() {
				if n <= 1001 {
					runChunk(t, newStore(t.Context(), rdb, set, zqtest.Queue(t)), c, n)
				}
			}
		})
	}
}

func TestEmbeddedModelAgrees(t *testing.T) {
	t.Parallel()
	got := driveModel(t, zqtest.Embedded(t).Client(), 500)
	t.Logf("%d steps reached %v", got.steps, got.reached)
	if got.steps < 500 {
		t.Errorf("%d steps, want 500 at least", got.steps)
	}
}
