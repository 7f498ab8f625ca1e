package main

import (
	"errors"
	"net/url"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// server is the Redis of this run.
type server struct {
	rdb     *redis.Client
	options *redis.Options // nil for the embedded one
	name    string
	close   func()
}

// openServer never repeats the URL as it was given: it may hold a password.
func openServer(address string) (server, error) {
	logging.Disable() // go-redis would print each failed dial beside the error that we print
	if address == "" {
		embedded, err := zqtest.StartEmbedded()
		if err != nil {
			return server{}, err
		}
		return server{rdb: embedded.Client(), close: embedded.Close, name: "embedded in this program; all in it is lost when it exits"}, nil
	}
	u, err := url.Parse(address)
	var options *redis.Options
	if err == nil {
		options, err = redis.ParseURL(address)
	}
	if err != nil {
		return server{}, errors.New("-redis is no URL such as redis://user:password@host:6379/0")
	}
	u.RawQuery, u.Fragment = "", ""
	rdb := redis.NewClient(options)
	return server{rdb: rdb, options: options, close: func() { _ = rdb.Close() }, name: u.Redacted()}, nil
}
