package zqfx_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// assembled is an application that is not started; what it logs is kept.
func assembled(t *testing.T, opts ...fx.Option) (*fx.App, *diary) {
	t.Helper()
	d := &diary{}
	app := fx.New(append([]fx.Option{fx.NopLogger, fx.Provide(d.logger)}, opts...)...)
	if err := app.Err(); err != nil {
		t.Fatal(err)
	}
	return app, d
}

// begun is an application that was started with a context that ended right after, and that the test stops.
func begun(t *testing.T, opts ...fx.Option) (*fx.App, *diary) {
	t.Helper()
	app, d := assembled(t, opts...)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := app.Start(ctx); err != nil {
		t.Fatal(err)
	}
	return app, d
}

// stopping stops an application in the background, within d; 0 means without a deadline.
func stopping(app *fx.App, d time.Duration) <-chan error {
	stopped := make(chan error, 1)
	go func() { // ends with the stop, which the caller waits for
		ctx, cancel := context.Background(), func() {}
		if d > 0 {
			ctx, cancel = context.WithTimeout(ctx, d)
		}
		defer cancel()
		stopped <- app.Stop(ctx)
	}()
	return stopped
}

// stopped stops an application in good order.
func stopped(t *testing.T, app *fx.App) {
	t.Helper()
	if err := zqtest.Wait(t, stopping(app, limit), limit); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// shutdownIn sets the time of a shutdown.
func shutdownIn(d time.Duration) fx.Option {
	return fx.Decorate(func(c zqfx.Config) zqfx.Config {
		c.ShutdownTimeout = d
		return c
	})
}

// deaf gives a handler that tells of each start, and returns when it is let go, whatever becomes of its context.
// The test's end lets it go.
func deaf(t *testing.T) (run func(context.Context, *zq.Delivery, OrderPlaced) error, entered <-chan string, letGo func()) {
	in, out := make(chan string, 100), make(chan struct{})
	letGo = sync.OnceFunc(func() { close(out) })
	t.Cleanup(letGo)
	return func(_ context.Context, _ *zq.Delivery, o OrderPlaced) error {
		in <- o.ID
		<-out
		return nil
	}, in, letGo
}

// heeding gives a handler that tells of each start, and works until its context ends.
func heeding() (run func(context.Context, *zq.Delivery, OrderPlaced) error, entered, ended <-chan string) {
	in, out := make(chan string, 100), make(chan string, 100)
	return func(ctx context.Context, _ *zq.Delivery, o OrderPlaced) error {
		in <- o.ID
		<-ctx.Done()
		out <- context.Cause(ctx).Error()
		return context.Cause(ctx)
	}, in, out
}

// inspectorOf is the inspector of a queue.
func inspectorOf(t *testing.T, rdb redis.UniversalClient, queue string) *zq.Inspector {
	t.Helper()
	in, err := zq.NewInspector(rdb, queue)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// depthOf is what a queue holds.
func depthOf(t *testing.T, rdb redis.UniversalClient, queue string) zq.Depth {
	t.Helper()
	d, err := inspectorOf(t, rdb, queue).Depth(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// newerLayout makes the queue a newer library's, and wakes who works on it.
func newerLayout(t *testing.T, rdb redis.UniversalClient, queue string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	if err := rdb.HSet(ctx, "zq:{"+queue+"}:meta", "layout", "999").Err(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.ZAdd(ctx, "zq:{"+queue+"}:wake", redis.Z{Member: "w"}).Err(); err != nil {
		t.Fatal(err)
	}
}

// diary keeps what was logged.
type diary struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write keeps a line.
func (d *diary) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(p)
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

func (d *diary) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(d, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// says fails the test unless each text was logged.
func (d *diary) says(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if got := d.String(); !strings.Contains(got, text) {
			t.Errorf("nothing was logged with %q:\n%s", text, got)
		}
	}
}

// chronicle is a list of what happened, in order.
type chronicle struct {
	mu   sync.Mutex
	what []string
}

func (l *chronicle) add(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.what = append(l.what, what)
}

func (l *chronicle) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.what, ", ")
}
