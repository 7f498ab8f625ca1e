package logging_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/zqueue/zqueue/middleware/logging"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// limit bounds every wait of these tests.
const limit = 20 * time.Second

var errOwn = errors.New("handler's own")

func TestMain(m *testing.M) { os.Exit(zqtest.Main(m)) }

// journal keeps what was logged, at every level.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

func (j *journal) handler() slog.Handler {
	return slog.NewJSONHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug - 100})
}

func (j *journal) logger() *slog.Logger { return slog.New(j.handler()) }

// lines are what was logged, without the time.
func (j *journal) lines(t *testing.T) []map[string]any {
	t.Helper()
	var all []map[string]any
	for dec := json.NewDecoder(bytes.NewBufferString(j.text())); dec.More(); {
		var line map[string]any
		if err := dec.Decode(&line); err != nil {
			t.Fatal(err)
		}
		delete(line, "time")
		all = append(all, line)
	}
	return all
}

// must makes the middleware, which logs to j.
func must(t *testing.T, j *journal, opts ...logging.Option) zq.Middleware {
	t.Helper()
	mw, err := logging.New(append([]logging.Option{logging.Logger(j.logger())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return mw
}

// returning is a handler that returns err.
func returning(err error) zq.Handler {
	return zq.HandlerFunc(func(context.Context, *zq.Delivery) error { return err })
}
