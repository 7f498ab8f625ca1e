package demo

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/trace"

	"github.com/zqueue/zqueue/examples/existingservice/internal/shop"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// Env is what the service finds where it runs.
type Env struct {
	// Listener is where it takes requests.
	Listener net.Listener
	Mail     *shop.Mailer
	Traces   trace.TracerProvider
	Log      *slog.Logger
	Out      io.Writer
	// RedisURL is where Redis is, an embedded one if empty.
	RedisURL string
}

// OpenRedis connects to Redis. It never repeats the URL as it was given: it may hold a password.
func (e Env) OpenRedis() (rdb *redis.Client, closeAll func(), err error) {
	if e.RedisURL == "" {
		embedded, err := zqtest.StartEmbedded()
		if err != nil {
			return nil, nil, err
		}
		fmt.Fprintln(e.Out, "redis: embedded in this program, so all is lost when it exits; -redis URL uses a real one")
		return embedded.Client(), embedded.Close, nil
	}
	options, err := redis.ParseURL(e.RedisURL)
	if err != nil {
		return nil, nil, errors.New("-redis is no URL such as redis://user:password@host:6379/0")
	}
	rdb = redis.NewClient(options)
	return rdb, func() { _ = rdb.Close() }, nil
}
