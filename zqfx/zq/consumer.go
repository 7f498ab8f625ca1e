package zq

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/internal/keys"
	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// Consumer runs a handler for the messages of a queue. It lives once: Run, or Start and Stop. Any number of
// consumers, in any number of processes, share a queue.
type Consumer struct {
	rdb     redis.UniversalClient
	queue   string
	handler Handler
	cfg     ConsumerConfig

	mu      sync.Mutex
	session *session
	ended   chan struct{} // closed when the session is over
	hurry   chan struct{}
	result  error
	hurried sync.Once
}

// NewConsumer makes a consumer. Messages with a key run in the order of their key, others in any. It lists
// all that is wrong with its arguments, and does no I/O. It opens connections of its own with rdb's options.
func NewConsumer(rdb redis.UniversalClient, queue string, h Handler, cfg ConsumerConfig) (*Consumer, error) {
	cfg = cfg.withDefaults()
	var handlerFault error
	if h == nil {
		handlerFault = invalid("handler", "nil", "a Handler")
	}
	if err := errors.Join(clientFault(rdb), queueFault(queue), handlerFault, cfg.validate()); err != nil {
		return nil, err
	}
	return &Consumer{
		rdb: rdb, queue: queue, handler: h, cfg: cfg, ended: make(chan struct{}), hurry: make(chan struct{}),
	}, nil
}

// NewOrderedConsumer makes a consumer whose configuration cannot spell what breaks the order of a key. For
// one order over the whole queue, send with a Strict producer.
func NewOrderedConsumer(rdb redis.UniversalClient, queue string, h Handler, cfg OrderedConfig) (*Consumer, error) {
	return NewConsumer(rdb, queue, h, cfg.config())
}

// Run works until ctx ends, then drains: it claims no more, lets handlers finish within DrainTime, and gives
// the rest back. It returns nil after a clean drain, a *DrainError if handlers did not return, and otherwise
// why it could not start or go on.
func (c *Consumer) Run(ctx context.Context) error {
	if err := c.Start(ctx); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-c.ended:
	}
	return c.Stop(context.WithoutCancel(ctx))
}

// Start checks the server and the queue, and begins to work. ctx is for the checks alone: the consumer
// outlives it. Handlers' contexts carry its values.
func (c *Consumer) Start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != nil {
		return wrap(ErrClosed, "start consumer of "+c.queue)
	}
	s := c.newSession(ctx)
	if err := s.check(ctx); err != nil {
		s.discard()
		return wrap(err, "start consumer of "+c.queue)
	}
	c.session = s
	s.start()    //nolint:contextcheck // ctx is for the checks alone; the session has contexts of its own
	go c.watch() //nolint:contextcheck // ends with the session, as above
	return nil
}

// watch drains the session once it stops, whoever stops it.
func (c *Consumer) watch() {
	<-c.session.stop
	err := c.session.drain(c.hurry)
	c.mu.Lock()
	c.result = errors.Join(c.session.fatal, err)
	c.mu.Unlock()
	close(c.ended)
}

// Stop ends the consumer as Run does and waits for it. When ctx ends first, the waits for handlers are cut
// short; Stop still returns after the last words with Redis, which are bounded.
func (c *Consumer) Stop(ctx context.Context) error {
	c.mu.Lock()
	s := c.session
	c.mu.Unlock()
	if s == nil {
		return nil
	}
	s.end(nil)
	select {
	case <-c.ended:
	case <-ctx.Done():
		c.hurried.Do(func() { close(c.hurry) })
		<-c.ended
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.result
}

// Done is closed when the consumer has stopped, by itself or by Stop.
func (c *Consumer) Done() <-chan struct{} { return c.ended }

// Stats counts what the consumer has done so far.
func (c *Consumer) Stats() ConsumerStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == nil {
		return ConsumerStats{}
	}
	return c.session.stats()
}

// Health says what the consumer does: new, claiming, idle, paused, degraded or stopped. When degraded, trouble
// names the calls that fail.
func (c *Consumer) Health() (state string, trouble []string) {
	c.mu.Lock()
	s := c.session
	c.mu.Unlock()
	if s == nil {
		return "new", nil
	}
	if s.stopping() {
		return "stopped", nil
	}
	state, trouble = s.log.health()
	if len(trouble) > 0 {
		slices.Sort(trouble)
		return "degraded", trouble
	}
	return state, nil
}

// Connections for handlers' checkpoints, beside those of the session's own calls.
const reservedConns = settlers + 4

func (c *Consumer) newSession(ctx context.Context) *session {
	s := &session{
		queue: c.queue, keys: keys.New(c.queue, 0), scripts: script.New(), handler: c.handler, cfg: c.cfg,
		rules: rules{maxAttempts: c.cfg.MaxAttempts, delay: c.cfg.RetryDelay},
		count: &counters{}, log: newJournal(c.cfg.Logger, c.queue),
		stop: make(chan struct{}), calm: make(chan struct{}), last: make(chan struct{}), look: make(chan struct{}, 1),
		sleepy: make(chan struct{}, 1), woken: make(chan struct{}, 1), doubt: make(chan string, 1),
	}
	s.seen = observers{list: c.cfg.Observers, log: s.log}
	base := context.WithoutCancel(ctx)
	s.rouseKey, s.awake = s.keys.Rouse(keys.ClaimID(uuid.New())), make(chan struct{})
	s.handlers, s.kill = context.WithCancelCause(base)
	s.io, s.cut = context.WithCancel(base)
	room := c.cfg.Concurrency + max(c.cfg.ClaimAhead, 0) + 2*stepMessages
	s.work, s.dirty = make(chan *unit, room), make(chan *claim, room)
	s.slots = make([]*slot, c.cfg.Concurrency)
	for i := range s.slots {
		s.slots[i] = &slot{}
	}
	s.rdb, s.own = ownClient(c.rdb, c.cfg.Concurrency+reservedConns)
	if sleeper, own := ownClient(c.rdb, 1); own {
		s.sleeper = sleeper
	}
	s.log.state("claiming")
	return s
}

// discard closes what newSession opened.
func (s *session) discard() {
	s.kill(nil)
	s.cut()
	if s.own {
		_ = s.rdb.Close()
	}
	if s.sleeper != nil {
		_ = s.sleeper.Close()
	}
}
