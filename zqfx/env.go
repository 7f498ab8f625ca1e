package zqfx

import (
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/caarlos0/env/v11"
)

// configFromEnv reads an instance's configuration from the environment. What is out of range is for Validate.
func configFromEnv(i instance) (Config, error) {
	var c Config
	err := env.ParseWithOptions(&c, env.Options{
		Prefix: i.envPrefix(),
		FuncMap: map[reflect.Type]env.ParserFunc{
			reflect.TypeFor[QueueConfig](): func(v string) (any, error) { return parseConcurrency(v) },
		},
	})
	if err != nil {
		return Config{}, fmt.Errorf("zqfx: environment %s…: %w", i.envPrefix(), err)
	}
	return c, nil
}

// parseConcurrency is what the environment has of a queue: "16" of "orders:16".
func parseConcurrency(v string) (QueueConfig, error) {
	n, err := strconv.Atoi(strings.TrimSpace(v))
	if err != nil || n < 1 {
		return QueueConfig{}, invalid("concurrency", v, "a number from 1, as in orders:16,mail:64")
	}
	return QueueConfig{Concurrency: n}, nil
}

// consumeOffByEnv tells whether the environment switches consuming off, before there is a graph to ask. What is
// no boolean is reported by configFromEnv.
func consumeOffByEnv(i instance) bool {
	on, err := strconv.ParseBool(os.Getenv(i.envPrefix() + "CONSUME"))
	return err == nil && !on
}
