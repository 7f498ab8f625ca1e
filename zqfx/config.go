package zqfx

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"
)

// Defaults and limits of Config.
const (
	// DefaultShutdownTimeout is what is left of fx's own 15 s after the reserve for other hooks.
	DefaultShutdownTimeout = 12 * time.Second
	// MinShutdownTimeout and MaxShutdownTimeout bound Config.ShutdownTimeout.
	MinShutdownTimeout = 100 * time.Millisecond
	MaxShutdownTimeout = 24 * time.Hour
)

// Words for Config.OnFatal.
const (
	onFatalShutdown = "shutdown"
	onFatalDegrade  = "degrade"
)

// Config is what can be set without touching code. The zero value is good; a zero field means its default.
// Module always provides one, read from the environment; change it with fx.Decorate, or put another in its
// place with fx.Replace. What an option of Queue or Module says in code comes before what stands here.
type Config struct {
	// RedisURL is where Redis is, if the graph has no client: redis, rediss or unix as redis.ParseURL reads
	// it, redis+sentinel and rediss+sentinel as redis.ParseFailoverURL does, redis+cluster and rediss+cluster
	// as redis.ParseClusterURL does. It holds a secret: String and LogValue mask it, encoders do not.
	RedisURL string `yaml:"redis_url" env:"REDIS_URL"`
	// Consume says whether this process works on queues; nil means that it does. Off by the environment, the
	// handlers are not even constructed; off by fx.Decorate or fx.Replace, they are and do nothing.
	Consume *bool `yaml:"consume" env:"CONSUME"`
	// ShutdownTimeout bounds the drain: MinShutdownTimeout to MaxShutdownTimeout, default
	// DefaultShutdownTimeout. The deadline of fx bounds it too; raise fx.StopTimeout with it.
	ShutdownTimeout time.Duration `yaml:"shutdown_timeout" env:"SHUTDOWN_TIMEOUT"`
	// ShutdownReserve is what the drain leaves of fx's deadline to the hooks of others, such as closing a
	// database: by default a fifth, and a second at least where that is not more than half. At most half.
	ShutdownReserve time.Duration `yaml:"shutdown_reserve" env:"SHUTDOWN_RESERVE"`
	// OnFatal is what happens when a consumer ends by itself: "shutdown" (default) or "degrade".
	OnFatal string `yaml:"on_fatal" env:"ON_FATAL"`
	// Queues are settings by queue. Each queue must be declared in code as well, by Queue, Handle or Sender. In
	// the environment a queue has its concurrency alone: ZQ_QUEUES=orders:16,mail:64.
	Queues map[string]QueueConfig `yaml:"queues" env:"QUEUES"`
}

// Validate lists all that is wrong, with each field's name and range.
func (c Config) Validate() error {
	var faults []error
	if c.RedisURL != "" {
		if _, err := parseRedisURL(c.RedisURL); err != nil {
			faults = append(faults, fmt.Errorf("config.RedisURL: %w", err))
		}
	}
	if t := c.ShutdownTimeout; t != 0 && (t < MinShutdownTimeout || t > MaxShutdownTimeout) {
		faults = append(faults, invalid("config.ShutdownTimeout", t, fmt.Sprintf("%s to %s", MinShutdownTimeout, MaxShutdownTimeout)))
	}
	if r := c.ShutdownReserve; r < 0 || r > MaxShutdownTimeout {
		faults = append(faults, invalid("config.ShutdownReserve", r, fmt.Sprintf("0 to %s", MaxShutdownTimeout)))
	}
	if f := c.OnFatal; f != "" && f != onFatalShutdown && f != onFatalDegrade {
		faults = append(faults, invalid("config.OnFatal", fmt.Sprintf("%q", f), onFatalShutdown+" or "+onFatalDegrade))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Queues)) {
		s := settings{QueueConfig: c.Queues[name]}
		for _, err := range leaves(errors.Join(queueFault(name), s.validate())) {
			faults = append(faults, fmt.Errorf("config.Queues[%q]: %w", name, err))
		}
	}
	return errors.Join(faults...)
}

// leaves are the errors that were joined, for a line each.
func leaves(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !ok:
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, leaves(e)...)
	}
	return all
}

// consumes is Consume with its default.
func (c Config) consumes() bool { return c.Consume == nil || *c.Consume }

func (c Config) shutdownTimeout() time.Duration {
	if c.ShutdownTimeout == 0 {
		return DefaultShutdownTimeout
	}
	return c.ShutdownTimeout
}

// String is the configuration without its secrets.
func (c Config) String() string { return c.LogValue().String() }

// GoString is String: %#v masks too.
func (c Config) GoString() string { return c.String() }

// LogValue is the configuration without its secrets, for log/slog.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("redis_url", maskURL(c.RedisURL)),
		slog.Bool("consume", c.consumes()),
		slog.Duration("shutdown_timeout", c.shutdownTimeout()),
		slog.Duration("shutdown_reserve", c.ShutdownReserve),
		slog.String("on_fatal", c.OnFatal),
		slog.Attr{Key: "queues", Value: c.logQueues()},
	)
}

func (c Config) logQueues() slog.Value {
	var all []slog.Attr
	for _, name := range slices.Sorted(maps.Keys(c.Queues)) {
		all = append(all, slog.Attr{Key: name, Value: c.Queues[name].LogValue()})
	}
	return slog.GroupValue(all...)
}
