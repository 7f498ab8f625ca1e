package zqfxtest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
	"github.com/zqueue/zqueue/zqfx/zqfxtest"
)

// New puts a Redis of the test's own in the place of every other, and starts nothing.
func TestNewHasARedisOfItsOwn(t *testing.T) {
	t.Parallel()
	handle, got := recipients()
	elsewhere := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // nobody is there
	defer elsewhere.Close()
	a := zqfxtest.New(t, mails(handle, fx.Supply(elsewhere)))
	b := zqfxtest.New(t, mails(handle))
	post(t, a, "ada")
	if d, err := b.Inspector("mail").Depth(t.Context()); err != nil || d.Pending != 0 {
		t.Errorf("the other has %d, %v", d.Pending, err)
	}
	if err := a.Health().Check(t.Context()); !errors.Is(err, zqfx.ErrNotReady) {
		t.Errorf("health: %v", err)
	}
	a.RequireStart()
	if err := a.Health().Check(t.Context()); err != nil {
		t.Errorf("health: %v", err)
	}
	drained(t, a)
	if got() != "ada" {
		t.Errorf("got %q", got())
	}
}

func TestWithRedis(t *testing.T) {
	t.Parallel()
	server := zqtest.Redis(t)
	rdb := server.Client()
	handle, got := recipients()
	app := zqfxtest.New(t, mails(handle), zqfxtest.WithRedis(rdb))
	if app.Redis() != redis.UniversalClient(rdb) {
		t.Error("it has another client")
	}
	app.RequireStart()
	post(t, app, "ada", "bob")
	drained(t, app)
	app.RequireStop()
	if n, err := rdb.HGet(t.Context(), "zq:{mail}:stats", "acked").Int(); err != nil || n != 2 || len(got()) != 7 {
		t.Errorf("%d acked, %v; got %q", n, err, got())
	}
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the caller's client was closed: %v", err)
	}
	failing(t, func(t testing.TB) { zqfxtest.New(t, mails(handle), zqfxtest.WithRedis(rdb)).Advance(time.Second) }, "clock")
}

// Not parallel: it sets the environment.
func TestURLVariable(t *testing.T) {
	server := zqtest.Redis(t, zqtest.WithConfig("requirepass", "hush"))
	t.Setenv(zqfxtest.URLVariable, server.URL())
	handle, got := recipients()
	app := zqfxtest.New(t, mails(handle)).RequireStart()
	post(t, app, "ada")
	drained(t, app)
	if n, err := server.Client().HGet(t.Context(), "zq:{mail}:stats", "acked").Int(); err != nil || n != 1 || got() != "ada" {
		t.Errorf("%d acked, %v; got %q", n, err, got())
	}
	app.RequireStop()
	t.Setenv(zqfxtest.URLVariable, "http://user:hush@127.0.0.1:1")
	fake := &fakeTB{TB: t}
	over := make(chan struct{})
	go func() { defer close(over); zqfxtest.New(fake, mails(handle)) }() // ends as the test fails
	zqtest.Wait(t, over, limit)
	text := strings.Join(fake.log, "\n")
	if !fake.failed || !strings.Contains(text, zqfxtest.URLVariable+" is no URL") || strings.Contains(text, "hush") {
		t.Errorf("it said:\n%s", text)
	}
}

// Instances have one Redis and worlds of their own.
func TestWithInstance(t *testing.T) {
	t.Parallel()
	handle, got := recipients()
	billed, bills := recipients()
	billing := zqfx.Instance("billing")
	app := zqfxtest.New(t, mails(handle), zqfxtest.WithInstance("billing"), zqfx.Module(billing),
		zqfx.Queue("bills", billing), zqfx.HandleFunc("bills", Send, billed, billing))
	post(t, app, "ada")
	b := app.Instance("billing")
	if _, err := Send.Send(t.Context(), b.Producer("bills"), Mail{To: "bob"}); err != nil {
		t.Fatal(err)
	}
	if ran := zqfxtest.WorkOne(t, b, "bills"); ran.Err != nil || bills() != "bob" || got() != "" {
		t.Errorf("%+v, got %q and %q", ran, bills(), got())
	}
	app.RequireStart()
	drained(t, app)
	drained(t, b)
	if err := b.Health().Check(t.Context()); err != nil || got() != "ada" {
		t.Errorf("%v, got %q", err, got())
	}
	failing(t, func(t testing.TB) { zqfxtest.New(t, mails(handle)).Instance("billing") }, "WithInstance")
	failing(t, func(t testing.TB) { zqfxtest.New(t, mails(handle)).Producer("bills") }, "bills", "mail")
	failing(t, func(t testing.TB) { zqfxtest.New(t, mails(handle)).Inspector("bills") }, "bills", "mail")
	failing(t, func(t testing.TB) { zqfxtest.New(t).Health() }, "zqfx.Module")
}

// What does not build, start or stop fails the test.
func TestAppFailsTheTest(t *testing.T) {
	t.Parallel()
	handle, _ := recipients()
	failing(t, func(t testing.TB) { zqfxtest.New(t, mails(handle), zqfx.HandleFunc("mail", Send, handle)) }, "two handlers")
	hook := func(h fx.Hook) fx.Option {
		return fx.Invoke(func(lc fx.Lifecycle) { lc.Append(h) })
	}
	bad := func(context.Context) error { return errors.New("no good") }
	failing(t, func(t testing.TB) { zqfxtest.New(t, mails(handle), hook(fx.Hook{OnStart: bad})).RequireStart() }, "no good")
	failing(t, func(t testing.TB) {
		app := zqfxtest.New(t, mails(handle), hook(fx.Hook{OnStop: bad})).RequireStart()
		app.RequireStop()
	}, "no good")
}

// One that fx stopped already is left alone, and one may be started without RequireStart.
func TestStopTwiceIsOnce(t *testing.T) {
	t.Parallel()
	handle, got := recipients()
	app := zqfxtest.New(t, mails(handle))
	app.RequireStop()
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	failing(t, func(t testing.TB) { zqfxtest.WorkOne(t, app, "mail") }, "started")
	post(t, app, "ada")
	drained(t, app)
	if err := app.Stop(t.Context()); err != nil || got() != "ada" {
		t.Errorf("%v, got %q", err, got())
	}
	app.RequireStop()
	post2 := func() error {
		_, err := Send.Send(t.Context(), app.Producer("mail"), Mail{})
		return err
	}
	if err := post2(); !errors.Is(err, zq.ErrClosed) {
		t.Errorf("send after the stop: %v", err)
	}
}

// F17: a missing dependency shows without Redis, and nothing is constructed.
func TestF17Validate(t *testing.T) {
	t.Parallel()
	type clock struct{}
	constructor := func(*clock) func(context.Context, *zq.Delivery, Mail) error {
		t.Error("it was constructed")
		return nil
	}
	nowhere := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer nowhere.Close()
	app := fx.Options(zqfx.Module(), zqfx.Handle("mail", Send, constructor), fx.Supply(nowhere))
	zqfxtest.Validate(t, app, fx.Provide(func() *clock { t.Error("it was constructed"); return nil }))
	failing(t, func(t testing.TB) { zqfxtest.Validate(t, app) }, "clock")
	failing(t, func(t testing.TB) { zqfxtest.Validate(t, app, zqfx.Handle("mail", Remind, "no constructor")) }, "app_test.go")
}

// Time passes when the test says so.
func TestAdvance(t *testing.T) {
	t.Parallel()
	handle, got := recipients()
	app := zqfxtest.New(t, mails(handle)).RequireStart()
	app.Advance(0)
	_, err := Send.Send(t.Context(), app.Producer("mail"), Mail{To: "later"}, zq.WithID("later"), zq.WithDelay(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	app.Advance(24*time.Hour - time.Second)
	info, err := app.Inspector("mail").Message(t.Context(), "later")
	if err != nil || info.State != zq.StateDelayed || got() != "" {
		t.Errorf("a second early: %s, %v, got %q", info.State, err, got())
	}
	app.Advance(time.Second)
	drained(t, app)
	if got() != "later" {
		t.Errorf("got %q", got())
	}
}

// One message at a time, under a clock that stands.
func TestWorkOneAfterAdvance(t *testing.T) {
	t.Parallel()
	handle, got := recipients()
	app := zqfxtest.New(t, mails(handle))
	app.Advance(0)
	if _, err := Send.Send(t.Context(), app.Producer("mail"), Mail{To: "later"}, zq.WithDelay(24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	app.Advance(24*time.Hour - time.Second)
	failing(t, func(t testing.TB) { zqfxtest.WorkOne(t, app, "mail") }, "no message is due")
	app.Advance(time.Second)
	if ran := zqfxtest.WorkOne(t, app, "mail"); ran.Err != nil || got() != "later" {
		t.Errorf("%+v, got %q", ran, got())
	}
	app.RequireStart()
}
