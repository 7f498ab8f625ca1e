package zqfx_test

import (
	"context"
	"net"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// database is a client of one database of a server.
func database(s *zqtest.Server, db int) *redis.Client {
	return s.Client(func(o *redis.Options) { o.DB = db })
}

// pending is how many messages wait in a queue.
func pending(t *testing.T, rdb redis.UniversalClient, queue string) int64 {
	t.Helper()
	in, err := zq.NewInspector(rdb, queue)
	if err != nil {
		t.Fatal(err)
	}
	d, err := in.Depth(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d.Pending
}

// oneNodeCluster is a client of a cluster with all slots on one node.
func oneNodeCluster(t *testing.T) *redis.ClusterClient {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the default bus port may be beyond the last one
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	server := zqtest.Redis(t, zqtest.WithConfig("cluster-enabled", "yes"), zqtest.WithConfig("cluster-port", port))
	if err := server.Client().ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr()}})
	t.Cleanup(func() { rdb.Close() })
	zqtest.Eventually(t, limit, func() bool { return rdb.Set(t.Context(), "up", 1, 0).Err() == nil }, "a cluster of one node")
	return rdb
}

func TestF4EachTypeOfClientWorks(t *testing.T) {
	t.Parallel()
	single := zqtest.Shared(t).Client()
	cluster := oneNodeCluster(t)
	cases := map[string]fx.Option{
		"client":            fx.Supply(single),
		"universal":         fx.Provide(func() redis.UniversalClient { return single }),
		"cluster":           fx.Supply(cluster),
		"universal cluster": fx.Provide(func() redis.UniversalClient { return cluster }),
		"named client":      fx.Supply(fx.Annotated{Name: "zq", Target: single}),
		"named cluster":     fx.Supply(fx.Annotated{Name: "zq", Target: cluster}),
		"client as both":    fx.Supply(fx.Annotate(single, fx.As(fx.Self()), fx.As(new(redis.UniversalClient)))),
		"url beside a client": fx.Options(fx.Supply(single), // the graph comes first
			fx.Decorate(func(c zqfx.Config) zqfx.Config { c.RedisURL = "redis://192.0.2.1:6379"; return c })),
	}
	for name, option := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queue := zqtest.Queue(t)
			run, ran := reporting()
			var p *zqfx.Producers
			started(t, option, plain(), zqfx.Module(), zqfx.HandleFunc(queue, Placed, run), fx.Populate(&p))
			send(t, p, queue, "o-1", zq.WithKey("c-1"))
			want(t, ran, "o-1")
		})
	}
}

func TestF4WithoutAClientOrURLTheErrorNamesBothWays(t *testing.T) {
	t.Setenv("ZQ_REDIS_URL", "")
	t.Setenv("ZQ_BILLING_REDIS_URL", "")
	nils := map[string]fx.Option{
		"none":        fx.Options(),
		"nil client":  fx.Provide(func() *redis.Client { return nil }),
		"nil cluster": fx.Provide(func() *redis.ClusterClient { return nil }),
		"nil":         fx.Provide(func() redis.UniversalClient { return nil }),
	}
	for name, option := range nils {
		t.Run(name, func(t *testing.T) {
			got := failed(t, option, zqfx.Module(), zqfx.HandleFunc("orders", Placed, nothing))
			mentions(t, got, "redis.UniversalClient", "*redis.Client", "*redis.ClusterClient", `name:"zq"`, "ZQ_REDIS_URL",
				"Config.RedisURL")
		})
	}
	got := failed(t, shared(t), zqfx.Module(zqfx.Instance("billing")), // the default client is another instance's
		zqfx.HandleFunc("orders", Placed, nothing, zqfx.Instance("billing")))
	mentions(t, got, "instance billing", `with name:"billing"`, "ZQ_BILLING_REDIS_URL")
}

// A nil in an interface is a mistake, and no reason to look for another Redis.
func TestF4TypedNilIsRefused(t *testing.T) {
	t.Setenv("ZQ_REDIS_URL", "redis://192.0.2.1:6379")
	typed := func() redis.UniversalClient { return (*redis.Client)(nil) }
	got := failed(t, fx.Provide(typed), zqfx.Module(), zqfx.HandleFunc("orders", Placed, nothing))
	mentions(t, got, "nil *redis.Client")
	got = failed(t, shared(t), fx.Provide(fx.Annotated{Name: "zq", Target: typed}), zqfx.Module(),
		zqfx.HandleFunc("orders", Placed, nothing))
	mentions(t, got, "nil *redis.Client")
}

func TestF4TwoClientsOfDifferentTypesAreRefused(t *testing.T) {
	t.Parallel()
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"192.0.2.1:6379"}})
	t.Cleanup(func() { cluster.Close() })
	got := failed(t, shared(t), fx.Supply(cluster), zqfx.Module(), zqfx.HandleFunc("orders", Placed, nothing))
	mentions(t, got, "both a *redis.Client and a *redis.ClusterClient")
}

func TestF5NamedClientWins(t *testing.T) {
	t.Parallel()
	server := zqtest.Redis(t)
	jobs, sessions := database(server, 1), database(server, 2)
	queue := zqtest.Queue(t)
	cases := map[string]fx.Option{
		"client":    fx.Supply(fx.Annotated{Name: "zq", Target: jobs}),
		"universal": fx.Provide(fx.Annotated{Name: "zq", Target: func() redis.UniversalClient { return jobs }}),
		"over a universal": fx.Options(fx.Supply(fx.Annotated{Name: "zq", Target: jobs}),
			fx.Provide(func() redis.UniversalClient { return sessions })),
	}
	for name, option := range cases {
		t.Run(name, func(t *testing.T) {
			if err := jobs.FlushDB(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			var p *zqfx.Producers
			started(t, option, client(sessions), plain(), zqfx.Module(zqfx.ProducerOnly()), zqfx.Queue(queue), fx.Populate(&p))
			send(t, p, queue, "o-1")
			if there, other := pending(t, jobs, queue), pending(t, sessions, queue); there != 1 || other != 0 {
				t.Errorf("%d in the named client's database, %d in the other", there, other)
			}
		})
	}
}

// A client of the application is not closed by the module; one that it made by a URL is.
func TestClientOfTheGraphStaysOpen(t *testing.T) {
	t.Parallel()
	queue := zqtest.Queue(t)
	rdb := zqtest.Shared(t).Client()
	app := fx.New(fx.NopLogger, client(rdb), plain(), zqfx.Module(), zqfx.HandleFunc(queue, Placed, nothing))
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := app.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := app.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Ping(ctx).Err(); err != nil {
		t.Errorf("after the stop: %v", err)
	}
}
