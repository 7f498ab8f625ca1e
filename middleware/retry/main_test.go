package retry_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/zqueue/zqueue/middleware/retry"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// limit bounds every wait of these tests.
const limit = 20 * time.Second

var errOwn = errors.New("handler's own")

func TestMain(m *testing.M) { os.Exit(zqtest.Main(m)) }

// must makes the middleware.
func must(t *testing.T, opts ...retry.Option) zq.Middleware {
	t.Helper()
	mw, err := retry.New(opts...)
	if err != nil {
		t.Fatal(err)
	}
	return mw
}

// fields are those that err calls invalid.
func fields(err error) []string {
	var invalid *zq.InvalidError
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []string
		for _, e := range joined.Unwrap() {
			all = append(all, fields(e)...)
		}
		return all
	}
	if errors.As(err, &invalid) && invalid.Value != "" && invalid.Want != "" {
		return []string{invalid.Field}
	}
	return nil
}
