package zqfx_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// universal gives a client of any kind to the application.
func universal(rdb redis.UniversalClient) fx.Option {
	return fx.Provide(func() redis.UniversalClient { return rdb })
}

// refused starts an application that must not start within d, and gives the error.
func refused(t *testing.T, d time.Duration, opts ...fx.Option) error {
	t.Helper()
	app, _ := assembled(t, opts...)
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	started := make(chan error, 1)
	go func() { started <- app.Start(ctx) }() // ends with ctx
	err := zqtest.Wait(t, started, d+limit)
	if err == nil {
		stopped(t, app)
		t.Fatal("it started")
	}
	return err
}

// oldServer says that it is from before ZMPOP.
type oldServer struct{ redis.UniversalClient }

// Info is what an old server says of itself.
func (oldServer) Info(ctx context.Context, _ ...string) *redis.StringCmd {
	c := redis.NewStringCmd(ctx)
	c.SetVal("# Server\r\nredis_version:6.2.14\r\n")
	return c
}

func TestStartRefusesAnOldServer(t *testing.T) {
	t.Parallel()
	queue := zqtest.Queue(t)
	run, _ := reporting()
	old := universal(oldServer{zqtest.Shared(t).Client()})
	err := refused(t, limit, old, zqfx.Module(), zqfx.HandleFunc(queue, Placed, run))
	if !errors.Is(err, zq.ErrOldServer) {
		t.Errorf("start: %v", err)
	}
	mentions(t, err.Error(), queue, "6.2.14")
}

// Nobody listens: the error comes at once, with the queue.
func TestStartWithoutRedisIsAnError(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	rdb := redis.NewClient(&redis.Options{Addr: l.Addr().String()})
	defer rdb.Close()
	queue := zqtest.Queue(t)
	run, _ := reporting()
	err = refused(t, limit, client(rdb), zqfx.Module(), zqfx.HandleFunc(queue, Placed, run))
	if errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the start took all its time: %v", err)
	}
	mentions(t, err.Error(), queue, l.Addr().String())
}

// Somebody listens and does not answer: the start obeys its context, and its own hook ends as well.
func TestStartWithSilentRedisEndsInTime(t *testing.T) {
	t.Parallel()
	server := zqtest.Redis(t)
	rdb := server.Client()
	run, _ := reporting()
	var h *zqfx.Health
	server.Pause()
	defer server.Resume()
	began := time.Now()
	err := refused(t, time.Second, client(rdb), zqfx.Module(), zqfx.HandleFunc(zqtest.Queue(t), Placed, run), fx.Populate(&h))
	zqtest.Eventually(t, 3*time.Second, func() bool {
		return strings.Contains(h.Check(t.Context()).Error(), "stopping")
	}, "the hook ends")
	if took := time.Since(began); took > 4*time.Second || strings.Contains(err.Error(), "not come to an end") {
		t.Errorf("after %v: %v", took, err)
	}
}

func TestStartRefusesANewerLayout(t *testing.T) {
	t.Parallel()
	rdb, queue := zqtest.Shared(t).Client(), zqtest.Queue(t)
	newerLayout(t, rdb, queue)
	run, _ := reporting()
	err := refused(t, limit, client(rdb), zqfx.Module(), zqfx.HandleFunc(queue, Placed, run))
	if !errors.Is(err, zq.ErrNewerLayout) {
		t.Errorf("start: %v", err)
	}
	mentions(t, err.Error(), queue, "999")
}

// A user who lacks a right finds out at the start, and not by half a message.
func TestStartRefusesAUserWithoutRights(t *testing.T) {
	t.Parallel()
	server := zqtest.Redis(t)
	limited := limitedUser(t, server, "-zmpop")
	queue := zqtest.Queue(t)
	run, _ := reporting()
	err := refused(t, limit, client(limited), zqfx.Module(), zqfx.HandleFunc(queue, Placed, run))
	mentions(t, err.Error(), queue, "rehearsal: script claim", "can't run this command")
}

// limitedUser is a client that may do anything but what the rules forbid.
func limitedUser(t *testing.T, server *zqtest.Server, rules ...string) *redis.Client {
	t.Helper()
	args := []any{"ACL", "SETUSER", "limited", "on", ">secret", "~*", "&*", "+@all"}
	for _, r := range rules {
		args = append(args, r)
	}
	if err := server.Client().Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
	return server.Client(func(o *redis.Options) { o.Username, o.Password = "limited", "secret" })
}

// F14: a client that panics makes the start fail, and takes nobody down.
func TestF14PanicInTheStartIsAnError(t *testing.T) {
	t.Parallel()
	queue := zqtest.Queue(t)
	run, _ := reporting()
	err := refused(t, limit, universal(struct{ redis.UniversalClient }{}), zqfx.Module(), zqfx.HandleFunc(queue, Placed, run))
	mentions(t, err.Error(), "consumer of "+queue, "panicked")
}
