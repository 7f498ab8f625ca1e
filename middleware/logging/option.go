package logging

import (
	"errors"
	"log/slog"
	"strconv"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Limits of what is written of one error, in bytes.
const (
	MaxError = 1024
	MaxStack = 4096
)

type config struct {
	logger      *slog.Logger
	levels      map[zq.Action]slog.Level
	key, plains bool
	faults      []error
}

// Option configures the middleware.
type Option interface{ apply(*config) }

type option func(*config)

func (f option) apply(c *config) { f(c) }

// Logger is where lines go, slog.Default unless set.
func Logger(l *slog.Logger) Option { return option(func(c *config) { c.logger = l }) }

// Level sets the level of lines with this outcome.
func Level(outcome zq.Action, l slog.Level) Option {
	return option(func(c *config) {
		if _, known := c.levels[outcome]; !known {
			c.faults = append(c.faults, &zq.InvalidError{
				Field: "logging.Level", Value: strconv.Quote(string(outcome)), Want: "one of the zq.Action constants",
			})
		}
		c.levels[outcome] = l
	})
}

// Key adds the ordering key. It often is a customer's number: ask whether your logs may have that.
func Key() Option { return option(func(c *config) { c.key = true }) }

// PlainIDs adds the message_id of members put in by plain ZADD, which is their body as well.
func PlainIDs() Option { return option(func(c *config) { c.plains = true }) }

func newConfig(opts []Option) (*config, error) {
	c := &config{levels: map[zq.Action]slog.Level{
		zq.ActionAck: slog.LevelInfo, zq.ActionRelease: slog.LevelInfo, zq.ActionPostpone: slog.LevelDebug,
		zq.ActionRetry: slog.LevelWarn, zq.ActionDrop: slog.LevelWarn, zq.ActionDead: slog.LevelError,
	}}
	for _, o := range opts {
		if o != nil {
			o.apply(c)
		}
	}
	if c.logger == nil {
		c.logger = slog.Default()
	}
	return c, errors.Join(c.faults...)
}
