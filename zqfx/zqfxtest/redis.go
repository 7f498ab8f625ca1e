package zqfxtest

import (
	"fmt"
	"os"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// URLVariable names the environment variable with the URL of a real Redis to test on.
const URLVariable = "ZQ_TEST_REDIS_URL"

const (
	clientName = `name:"zq"` // before a client without a name, and before a URL
	partsGroup = `group:"zqfxtest.parts"`
	optional   = `optional:"true"`
)

// choice is a client that the test chose.
type choice struct{ rdb redis.UniversalClient }

// WithRedis runs the application on this client instead of the embedded Redis. It stays the caller's to close.
func WithRedis(rdb redis.UniversalClient) fx.Option { return fx.Supply(&choice{rdb}) }

// WithInstance gives an instance of the application the same Redis.
func WithInstance(name string) fx.Option {
	return fx.Options(
		fx.Provide(fx.Annotate(func(rdb redis.UniversalClient) redis.UniversalClient { return rdb },
			fx.ParamTags(clientName), fx.ResultTags(`name:"`+name+`"`))),
		gather(name),
	)
}

// parts is what an instance provides; nil what it does not.
type parts struct {
	instance  string
	producers *zqfx.Producers
	health    *zqfx.Health
	worker    *zqfx.Worker
}

// gather collects the parts of an instance.
func gather(name string) fx.Option {
	tag := optional
	if name != "" {
		tag = `name:"` + name + `" ` + optional
	}
	return fx.Provide(fx.Annotate(
		func(p *zqfx.Producers, h *zqfx.Health, w *zqfx.Worker) parts { return parts{name, p, h, w} },
		fx.ParamTags(tag, tag, tag), fx.ResultTags(partsGroup),
	))
}

// open gives the client to test with.
func (s *state) open(c *choice) (redis.UniversalClient, error) {
	if c != nil {
		return c.rdb, nil
	}
	if url := os.Getenv(URLVariable); url != "" {
		o, err := redis.ParseURL(url)
		if err != nil {
			return nil, fmt.Errorf("zqfxtest: %s is no URL of a Redis", URLVariable) // the error would quote its password
		}
		rdb := redis.NewClient(o)
		s.tb.Cleanup(func() { _ = rdb.Close() })
		return rdb, nil
	}
	server, err := zqtest.StartEmbedded()
	if err != nil {
		return nil, err
	}
	s.tb.Cleanup(server.Close)
	s.embedded = server
	return server.Client(), nil
}

// take keeps what the application is made of, and follows its start and stop.
func (s *state) take(lc fx.Lifecycle, rdb redis.UniversalClient, all []parts) {
	s.rdb = rdb
	for _, p := range all {
		s.parts[p.instance] = p
	}
	lc.Append(fx.StartStopHook(func() { s.started.Store(true) }, func() { s.started.Store(false) }))
}
