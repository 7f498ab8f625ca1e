package main

import (
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// server is the Redis of this run, for people.
type server struct {
	name     string
	embedded bool
}

// newServer gives the client that zqfx finds in the graph.
func newServer(lc fx.Lifecycle, o options) (*server, *redis.Client, error) {
	logging.Disable() // go-redis would print each failed dial beside the error that we print
	if o.redis != nil {
		rdb := redis.NewClient(o.redis)
		lc.Append(fx.StopHook(rdb.Close))
		return &server{name: o.where}, rdb, nil
	}
	embedded, err := zqtest.StartEmbedded()
	if err != nil {
		return nil, nil, err
	}
	lc.Append(fx.StopHook(embedded.Close))
	return &server{
		name:     "embedded in this program, so all is lost when it exits; -redis URL uses a real one",
		embedded: true,
	}, embedded.Client(), nil
}
