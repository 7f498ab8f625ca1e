package zqfxtest_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
	"github.com/zqueue/zqueue/zqfx/zqfxtest"
)

// limit bounds every wait of these tests.
const limit = 20 * time.Second

func TestMain(m *testing.M) {
	// What decides about the Redis of these tests is in them.
	if err := os.Unsetenv(zqfxtest.URLVariable); err != nil {
		panic(err)
	}
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(zqtest.Main(m))
}

// Mail is the payload of these tests.
type Mail struct{ To string }

// Its kind, and another one of the same payload.
var (
	Send   = zq.NewKind[Mail]("mail.send")
	Remind = zq.NewKind[Mail]("mail.remind")
)

// mails is an application with one queue and this handler.
func mails(handle func(context.Context, *zq.Delivery, Mail) error, more ...fx.Option) fx.Option {
	return fx.Options(zqfx.Module(), zqfx.Queue("mail"), zqfx.HandleFunc("mail", Send, handle), fx.Options(more...))
}

// recipients gives a handler that keeps who got mail, and what it kept.
func recipients() (handle func(context.Context, *zq.Delivery, Mail) error, got func() string) {
	var mu sync.Mutex
	var all []string
	return func(_ context.Context, _ *zq.Delivery, m Mail) error {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, m.To)
			return nil
		}, func() string {
			mu.Lock()
			defer mu.Unlock()
			return strings.Join(all, " ")
		}
}

// post enqueues mail to each.
func post(t *testing.T, app *zqfxtest.App, to ...string) {
	t.Helper()
	for _, one := range to {
		if _, err := Send.Send(t.Context(), app.Producer("mail"), Mail{To: one}, zq.WithID(one)); err != nil {
			t.Fatal(err)
		}
	}
}

// drained waits until all work is done.
func drained(t *testing.T, app *zqfxtest.App) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := app.Drain(ctx); err != nil {
		t.Fatal(err)
	}
}

// fakeTB stands in for a test that is expected to fail.
type fakeTB struct {
	testing.TB // its name, context and clean-ups

	mu     sync.Mutex
	log    []string
	failed bool
}

// failing runs f as a test that must fail, and checks what it complained of.
func failing(t *testing.T, f func(t testing.TB), parts ...string) {
	t.Helper()
	fake := &fakeTB{TB: t}
	over := make(chan struct{})
	go func() { // ends with f
		defer close(over)
		f(fake)
	}()
	zqtest.Wait(t, over, limit)
	fake.mu.Lock()
	defer fake.mu.Unlock()
	if !fake.failed {
		t.Error("it did not fail")
	}
	for _, part := range parts {
		if text := strings.Join(fake.log, "\n"); !strings.Contains(text, part) {
			t.Errorf("no %q in:\n%s", part, text)
		}
	}
}

// Helper is not passed on: it would mark the caller of this.
func (f *fakeTB) Helper() {}

// Logf keeps the line.
func (f *fakeTB) Logf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, fmt.Sprintf(format, args...))
}

// Errorf keeps the line, and fails.
func (f *fakeTB) Errorf(format string, args ...any) {
	f.Logf(format, args...)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = true
}

// FailNow ends the stand-in's test.
func (f *fakeTB) FailNow() {
	f.Errorf("failed")
	runtime.Goexit()
}

// Fatalf keeps the line, and ends the stand-in's test.
func (f *fakeTB) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

// Fatal keeps the line, and ends the stand-in's test.
func (f *fakeTB) Fatal(args ...any) { f.Fatalf("%s", fmt.Sprint(args...)) }
