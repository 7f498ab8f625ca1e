package main

import (
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// server is the Redis of this run.
type server struct {
	rdb      *redis.Client
	name     string
	embedded bool
	close    func()
}

func openServer(o options) (server, error) {
	logging.Disable() // go-redis would print each failed dial beside the error that we print
	if o.redis != nil {
		rdb := redis.NewClient(o.redis)
		return server{rdb: rdb, name: o.where, close: func() { _ = rdb.Close() }}, nil
	}
	embedded, err := zqtest.StartEmbedded()
	if err != nil {
		return server{}, err
	}
	return server{
		rdb: embedded.Client(), embedded: true, close: embedded.Close,
		name: "embedded in this program, so all is lost when it exits; -redis URL uses a real one",
	}, nil
}
