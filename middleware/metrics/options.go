package metrics

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Option configures New.
type Option interface{ apply(*config) }

type option func(*config)

func (f option) apply(c *config) { f(c) }

type config struct{ provider metric.MeterProvider }

// WithMeterProvider sets where the metrics go. Without it, or with nil, it is the global provider; one that is set
// as the global one after New gets them too.
func WithMeterProvider(p metric.MeterProvider) Option {
	return option(func(c *config) { c.provider = p })
}

func newConfig(opts []Option) config {
	var c config
	for _, o := range opts {
		if o != nil {
			o.apply(&c)
		}
	}
	if c.provider == nil {
		c.provider = otel.GetMeterProvider()
	}
	return c
}

// WatchOption configures Watch.
type WatchOption interface{ applyWatch(*watchConfig) }

type watchOption func(*watchConfig)

func (f watchOption) applyWatch(c *watchConfig) { f(c) }

type watchConfig struct{ every, within time.Duration }

// Every sets for how long a reading of the depth serves all scrapes: 100 ms to 1 h, default 5 s. If a later one
// fails, the last one serves for three times as long before there is no value.
func Every(d time.Duration) WatchOption {
	return watchOption(func(c *watchConfig) { c.every = d })
}

// Within bounds how long a scrape waits for a reading: 1 ms to 1 min, default 1 s.
func Within(d time.Duration) WatchOption {
	return watchOption(func(c *watchConfig) { c.within = d })
}

func newWatchConfig(opts []WatchOption) (watchConfig, error) {
	c := watchConfig{every: 5 * time.Second, within: time.Second}
	for _, o := range opts {
		if o != nil {
			o.applyWatch(&c)
		}
	}
	return c, errors.Join(
		between("metrics.Every", c.every, 100*time.Millisecond, time.Hour),
		between("metrics.Within", c.within, time.Millisecond, time.Minute))
}

func between(field string, d, least, most time.Duration) error {
	if d < least || d > most {
		return invalid(field, d.String(), fmt.Sprintf("%s to %s", least, most))
	}
	return nil
}

func invalid(field, value, want string) error {
	return &zq.InvalidError{Field: field, Value: value, Want: want}
}
