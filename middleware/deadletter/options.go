package deadletter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Limits of the middleware's settings. A value outside gives a *zq.InvalidError that names the field, the value and
// the range.
const (
	DefaultSendTimeout = 3 * time.Second
	MaxSendTimeout     = time.Minute
	DefaultPause       = 5 * time.Second
	MaxPause           = time.Hour
)

type config struct {
	classifier  func(error, string) string
	onDead      func(context.Context, *zq.Delivery, Letter)
	routes      map[string]Target
	rest        Target
	sendTimeout time.Duration
	pause       time.Duration
	logger      *slog.Logger
	faults      []error
}

// Option configures the middleware.
type Option interface{ apply(*config) }

type option func(*config)

func (f option) apply(c *config) { f(c) }

// Classify sets the reason of a message that dies: f gets the error that came out of the chain and the reason that
// it would have, and returns the one it shall have, which counts for Route too. The result is cut to MaxReason bytes
// without control characters; an empty one changes nothing. f must be safe for concurrent use; a panic changes
// nothing and is logged once. See ByCause.
func Classify(f func(err error, reason string) string) Option {
	return option(func(c *config) { c.classifier = f })
}

// OnDead is told of each message that dies here, once a decision: after it is in the other queue, where there is one,
// and before the outcome is recorded. It cannot change the outcome. f must be quick and safe for concurrent use; a
// panic is caught and logged once.
func OnDead(f func(ctx context.Context, d *zq.Delivery, l Letter)) Option {
	return option(func(c *config) { c.onDead = f })
}

// Route says where messages go that die for a reason. The zero Target is their own queue's dead letters, where all
// go unless told otherwise. A reason can be routed once.
func Route(reason string, t Target) Option {
	return option(func(c *config) {
		if _, twice := c.routes[reason]; twice {
			c.faults = append(c.faults, invalid("deadletter.Route reason", strconv.Quote(reason), "each reason once"))
		}
		if reason == "" || clean(reason) != reason {
			c.faults = append(c.faults, invalid("deadletter.Route reason", strconv.Quote(clean(reason)),
				fmt.Sprintf("1 to %d bytes of UTF-8 without control characters", MaxReason)))
		}
		c.faults = append(c.faults, t.faults()...)
		c.routes[reason] = t
	})
}

// RouteRest says where messages go whose reason has no Route.
func RouteRest(t Target) Option {
	return option(func(c *config) {
		c.faults = append(c.faults, t.faults()...)
		c.rest = t
	})
}

// SendTimeout bounds one try to send a message to another queue: 1 ms to MaxSendTimeout, DefaultSendTimeout unless
// set. It should be shorter than the consumer's Grace, which is all that is left after a run that was too long.
func SendTimeout(d time.Duration) Option { return option(func(c *config) { c.sendTimeout = d }) }

// Pause is how long a message is put off, uncharged, when it could not be sent to another queue: 1 ms to MaxPause,
// DefaultPause unless set. Up to a quarter is added by the message's id, so that they do not all come back at once.
func Pause(d time.Duration) Option { return option(func(c *config) { c.pause = d }) }

// Logger gets changes of state and what nobody else can be told; slog.Default unless set. Never bodies, keys, headers
// or what a handler's error says.
func Logger(l *slog.Logger) Option { return option(func(c *config) { c.logger = l }) }

func newConfig(opts []Option) (*config, error) {
	c := &config{routes: map[string]Target{}, sendTimeout: DefaultSendTimeout, pause: DefaultPause}
	for _, o := range opts {
		if o != nil {
			o.apply(c)
		}
	}
	if c.logger == nil {
		c.logger = slog.Default()
	}
	c.faults = append(c.faults,
		between("deadletter.SendTimeout", c.sendTimeout, time.Millisecond, MaxSendTimeout),
		between("deadletter.Pause", c.pause, time.Millisecond, MaxPause),
	)
	return c, errors.Join(c.faults...)
}

func between(field string, d, least, most time.Duration) error {
	if d < least || d > most {
		return invalid(field, d, fmt.Sprintf("%s to %s", least, most))
	}
	return nil
}

func invalid(field string, value any, want string) *zq.InvalidError {
	return &zq.InvalidError{Field: field, Value: fmt.Sprint(value), Want: want}
}
