package zqfx_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// Whatever the scheme, the URL alone is enough, and its password reaches the server.
func TestURLReachesRedis(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "zqfx") // a socket's path has a hundred bytes, and a test's directory a long one
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "redis.sock")
	server := zqtest.Redis(t, zqtest.WithConfig("unixsocket", socket), zqtest.WithConfig("requirepass", "p@ss/word"))
	password := url.QueryEscape("p@ss/word")
	for name, raw := range map[string]string{
		"redis": "redis://:" + password + "@" + server.Addr() + "/1",
		"unix":  "unix://:" + password + "@" + socket + "?db=1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queue := zqtest.Queue(t)
			run, ran := reporting()
			var p *zqfx.Producers
			started(t, plain(), zqfx.Module(), zqfx.HandleFunc(queue, Placed, run), fx.Populate(&p),
				configured(func(c *zqfx.Config) { c.RedisURL = raw }))
			send(t, p, queue, "o-1", zq.WithID("o-1"))
			want(t, ran, "o-1")
			if n := server.Client().Exists(t.Context(), "zq:{"+queue+"}:meta").Val(); n != 0 {
				t.Error("the queue is in database 0, the URL says 1")
			}
		})
	}
}

// A client that the module made by a URL is closed with the application.
func TestURLsClientIsClosedAtTheStop(t *testing.T) {
	t.Parallel()
	server := zqtest.Redis(t)
	queue := zqtest.Queue(t)
	var p *zqfx.Producers
	app := fx.New(fx.NopLogger, plain(), zqfx.Module(), zqfx.HandleFunc(queue, Placed, nothing), fx.Populate(&p),
		configured(func(c *zqfx.Config) { c.RedisURL = server.URL() + "?client_name=ours" }))
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := app.Start(ctx); err != nil {
		t.Fatal(err)
	}
	send(t, p, queue, "o-1")
	in, err := p.Inspector(queue) // it uses the client itself; consumers and producers have connections of their own
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Depth(ctx); err != nil {
		t.Fatal(err)
	}
	rdb := server.Client()
	ours := func() bool {
		list, err := rdb.ClientList(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(list, "name=ours")
	}
	if !ours() {
		t.Fatal("no connection of the application before the stop")
	}
	if err := app.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	zqtest.Eventually(t, limit, func() bool { return !ours() }, "the application's connections are gone")
	if _, err := p.For(queue); err != nil {
		t.Errorf("a producer that was made before: %v", err)
	}
}

func TestBadURLIsAnErrorWithoutItsPassword(t *testing.T) {
	t.Setenv("ZQ_REDIS_URL", "redis://:hunter2#x@host:6379")
	got := failed(t, zqfx.Module(), zqfx.HandleFunc("orders", Placed, nothing))
	mentions(t, got, "config.RedisURL", "redis://***", "percent-encoded")
	if strings.Contains(got, "hunter2") {
		t.Errorf("the error tells the password:\n%s", got)
	}
}
