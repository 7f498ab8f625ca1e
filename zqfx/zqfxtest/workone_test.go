package zqfxtest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/effect"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
	"github.com/zqueue/zqueue/zqfx/zqfxtest"
)

// by makes a handler of what looks at the message alone.
func by(decide func(*zq.Delivery) error) func(context.Context, *zq.Delivery, Mail) error {
	return func(_ context.Context, d *zq.Delivery, _ Mail) error { return decide(d) }
}

// Exactly one of several runs, the next in order, and the others are untouched.
func TestWorkOneRunsExactlyOne(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]zqfx.QueueOption{"loose": nil, "strict": {zqfx.Strict()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handle, got := recipients()
			app := zqfxtest.New(t, zqfx.Module(), zqfx.Queue("mail", opts...), zqfx.HandleFunc("mail", Send, handle))
			post(t, app, "ada", "bob", "cyd", "dan")
			for i, want := range []string{"ada", "ada bob", "ada bob cyd"} {
				ran := zqfxtest.WorkOne(t, app, "mail")
				whole := ran.Kind == "mail.send" && ran.Attempt == 1 && ran.Err == nil && ran.Action == zq.ActionAck
				if got() != want || ran.ID != want[4*i:] || !whole {
					t.Errorf("%+v, got %q, want %q", ran, got(), want)
				}
				d, err := app.Inspector("mail").Depth(t.Context())
				if err != nil || d.Pending != int64(3-i) || d.Running+d.Delayed+d.Claims+d.KeysHeld != 0 {
					t.Errorf("after %d: %+v, %v", i+1, d, err)
				}
			}
			for _, info := range zqfxtest.RequireEnqueued(t, app, "mail", Send) {
				if info.Attempts != 0 || info.State != zq.StatePending {
					t.Errorf("%s: %s after %d attempts", info.ID, info.State, info.Attempts)
				}
			}
		})
	}
}

var errOffice = errors.New("the office is closed")

// A failing handler fails no test: its error, the attempt and what becomes of the message are told.
func TestWorkOneTellsOfFailures(t *testing.T) {
	t.Parallel()
	app := zqfxtest.New(t, zqfx.Module(), zqfx.HandleFunc("mail", Send, by(func(d *zq.Delivery) error {
		switch d.Attempt {
		case 1:
			return zq.RetryAfter(0, errOffice)
		case 2:
			return zq.RetryAfter(time.Millisecond, errOffice)
		case 3:
			panic("the roof falls")
		}
		return zq.Dead("no office", errOffice)
	})), zqfx.Queue("mail", zqfx.MaxAttempts(5), zqfx.RetryDelay(func(*zq.Delivery, error) time.Duration { return 0 })),
		zqfx.Chain(zqfx.PlainChain(nil)))
	post(t, app, "ada")
	ran := zqfxtest.WorkOne(t, app, "mail")
	if ran.ID != "ada" || ran.Attempt != 1 || !errors.Is(ran.Err, errOffice) || ran.Action != zq.ActionRetry || ran.Delay != 0 {
		t.Errorf("first: %+v", ran)
	}
	ran = zqfxtest.WorkOne(t, app, "mail")
	if ran.Attempt != 2 || !errors.Is(ran.Err, errOffice) || ran.Action != zq.ActionRetry || ran.Delay != time.Millisecond {
		t.Errorf("second: %+v", ran)
	}
	zqtest.Eventually(t, limit, func() bool { return dueNow(t, app) }, "it is due again")
	ran = zqfxtest.WorkOne(t, app, "mail")
	panicked := (*zq.PanicError)(nil)
	if ran.Attempt != 3 || !errors.As(ran.Err, &panicked) || panicked.Value != "the roof falls" {
		t.Errorf("third: %+v", ran)
	}
	ran = zqfxtest.WorkOne(t, app, "mail")
	if ran.Attempt != 4 || ran.Action != zq.ActionDead || ran.Reason != "no office" || !errors.Is(ran.Err, errOffice) {
		t.Errorf("fourth: %+v", ran)
	}
	failing(t, func(t testing.TB) { zqfxtest.WorkOne(t, app, "mail") }, "empty")
}

// dueNow tells whether a message that waits for its time has it.
func dueNow(t *testing.T, app *zqfxtest.App) bool {
	t.Helper()
	info, err := app.Inspector("mail").Message(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	return time.Now().After(info.Due)
}

// The default chain is in it, and an ack whose effects do not hold is told as what it becomes.
func TestWorkOneTellsTheLastDecision(t *testing.T) {
	t.Parallel()
	server := zqtest.Redis(t)
	app := zqfxtest.New(t, zqfxtest.WithRedis(server.Client()), mails(func(_ context.Context, d *zq.Delivery, _ Mail) error {
		return d.Effect(effect.IfExists("stamp"), effect.Del("stamp"))
	}))
	post(t, app, "ada", "bob")
	ran := zqfxtest.WorkOne(t, app, "mail")
	if broken := (*zq.EffectError)(nil); !errors.As(ran.Err, &broken) || ran.Action != zq.ActionRetry || ran.ID != "ada" {
		t.Errorf("without a stamp: %+v", ran)
	}
	if err := app.Redis().Set(t.Context(), zq.EffectKey("mail", "stamp"), "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if ran = zqfxtest.WorkOne(t, app, "mail"); ran.Err != nil || ran.Action != zq.ActionAck || ran.ID != "bob" {
		t.Errorf("with a stamp: %+v", ran)
	}
}

// A body that is none is told like a failure.
func TestWorkOneOfAnUnreadableBody(t *testing.T) {
	t.Parallel()
	handle, got := recipients()
	app := zqfxtest.New(t, mails(handle))
	torn := zq.Message{ID: "torn", Kind: "mail.send", Body: []byte("{")}
	if _, err := app.Producer("mail").Enqueue(t.Context(), torn); err != nil {
		t.Fatal(err)
	}
	ran := zqfxtest.WorkOne(t, app, "mail")
	if ran.ID != "torn" || ran.Err == nil || ran.Action != zq.ActionDead || got() != "" {
		t.Errorf("%+v, got %q", ran, got())
	}
}

// Where no message can run, the test fails, at once, and says why.
func TestWorkOneFailsTheTest(t *testing.T) {
	t.Parallel()
	handle, got := recipients()
	app := zqfxtest.New(t, mails(handle))
	began := time.Now()
	failing(t, func(t testing.TB) { zqfxtest.WorkOne(t, app, "mail") }, `WorkOne("mail")`, "empty")
	failing(t, func(t testing.TB) { zqfxtest.WorkOne(t, app, "letters") }, "letters", "consumed here")
	if _, err := Send.Send(t.Context(), app.Producer("mail"), Mail{To: "later"}, zq.WithDelay(time.Hour)); err != nil {
		t.Fatal(err)
	}
	failing(t, func(t testing.TB) { zqfxtest.WorkOne(t, app, "mail") }, "no message is due: 0 pending, 1 delayed")
	post(t, app, "ada")
	if _, err := app.Inspector("mail").Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	failing(t, func(t testing.TB) { zqfxtest.WorkOne(t, app, "mail") }, "paused")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v to find out", took)
	}
	if _, err := app.Inspector("mail").Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	app.RequireStart()
	failing(t, func(t testing.TB) { zqfxtest.WorkOne(t, app, "mail") }, "started")
	app.RequireStop()
	if got() != "ada" && got() != "" {
		t.Errorf("got %q", got())
	}
	produces := zqfxtest.New(t, zqfx.Module(zqfx.ProducerOnly()), zqfx.Queue("mail"))
	failing(t, func(t testing.TB) { zqfxtest.WorkOne(t, produces, "mail") }, "only produces")
}

// Without Redis it is the test that fails.
func TestWorkOneWithoutRedisFailsTheTest(t *testing.T) {
	t.Parallel()
	nowhere := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	defer nowhere.Close()
	handle, _ := recipients()
	app := zqfxtest.New(t, mails(handle), zqfxtest.WithRedis(nowhere))
	failing(t, func(t testing.TB) { zqfxtest.WorkOne(t, app, "mail") }, "refused")
	failing(t, func(t testing.TB) { zqfxtest.RequireEnqueued(t, app, "mail", Send) }, "refused")
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := app.Drain(ctx); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("drain: %v", err)
	}
}
