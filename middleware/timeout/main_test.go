package timeout_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/zqueue/zqueue/middleware/timeout"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// limit bounds every wait of these tests.
const limit = 20 * time.Second

var errOwn = errors.New("handler's own")

func TestMain(m *testing.M) { os.Exit(zqtest.Main(m)) }

// must makes the middleware.
func must(t *testing.T, d time.Duration, opts ...timeout.Option) zq.Middleware {
	t.Helper()
	mw, err := timeout.New(d, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return mw
}
