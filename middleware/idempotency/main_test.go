package idempotency_test

import (
	"os"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// limit bounds every wait of these tests.
const limit = 30 * time.Second

// TestMain serves the shared redis-server, and runs the workers that are killed for real.
func TestMain(m *testing.M) {
	zqtest.RegisterChild("worker", runWorker)
	os.Exit(zqtest.Main(m))
}
