package sequence

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/effect"
)

// New makes the middleware for the consumers of one queue. It belongs outside idempotency, so that a skipped
// duplicate confirms its number. It lists all that is wrong with its arguments, as *zq.InvalidError, does no I/O
// and starts nothing. It is safe for concurrent use; several handlers that share one share its round trips.
func New(rdb redis.UniversalClient, queue string, opts ...Option) (zq.Middleware, error) {
	cfg, err := newConfig(opts)
	if rdb == nil {
		err = errors.Join(invalid("sequence redis", "nil", "a client"), err)
	}
	if err = errors.Join(queueFault(queue), err); err != nil {
		return nil, err
	}
	g := &gate{cfg: cfg, queue: queue, reads: reader{rdb: rdb, queue: queue}}
	return func(next zq.Handler) zq.Handler {
		return zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error { return g.handle(ctx, d, next) })
	}, nil
}

// gate is the middleware.
type gate struct {
	cfg   *config
	queue string
	reads reader

	panicked, down atomic.Bool // said once
}

func (g *gate) handle(ctx context.Context, d *zq.Delivery, next zq.Handler) error {
	if d.Queue != g.queue {
		return fmt.Errorf("sequence: made for queue %s, got a message of %s", g.queue, d.Queue)
	}
	n, err := g.number(d)
	if err != nil {
		return g.unnumbered(ctx, d, next, err)
	}
	values, err := g.reads.ask(ctx, d.Key, fields(n)...)
	if err != nil {
		return g.unanswered(ctx, d, n, err)
	}
	s, err := readState(values, g.cfg.first)
	if err != nil {
		return fmt.Errorf("%s/%s: %w", d.Queue, d.ID, err)
	}
	g.down.Store(false)
	switch {
	case n == s.confirmed+1:
		return g.run(ctx, d, next, n, &s, nil)
	case n <= s.confirmed:
		return g.seen(ctx, d, n, &s)
	case n-s.confirmed > g.cfg.ahead:
		g.tell(ctx, d, report(TooFar, d, n, &s))
		return zq.Dead(ReasonGap, fmt.Errorf("number %d is more than %d ahead of %d", n, g.cfg.ahead, s.confirmed))
	}
	return g.early(ctx, d, next, n, &s)
}

func (g *gate) unnumbered(ctx context.Context, d *zq.Delivery, next zq.Handler, err error) error {
	g.tell(ctx, d, Report{Outcome: Unnumbered, Key: d.Key})
	if g.cfg.pass && errors.Is(err, ErrUnnumbered) {
		return next.Handle(ctx, d)
	}
	return zq.Dead(ReasonNumber, err)
}

// run runs the message, and attaches to its ack that its number is confirmed and who may go on. skipped is the gap
// that this closes, nil if there is none. The claim holds the key, so nothing else of it is confirmed meanwhile;
// the precondition is for what an operator does.
func (g *gate) run(ctx context.Context, d *zq.Delivery, next zq.Handler, n int64, s *state, skipped *Range) error {
	if err := next.Handle(ctx, d); err != nil {
		return err
	}
	hash := hashPrefix + d.Key
	list := []effect.Effect{effect.IfNoField(hash, fieldLast), effect.HSet(hash, fieldLast, itoa(n))}
	if s.known {
		list[0] = effect.IfField(hash, fieldLast, itoa(s.confirmed))
	}
	if skipped != nil {
		list = append(list, effect.HSet(hash, fieldSkipped, s.skipped.with(*skipped).String()))
	}
	if s.own != nil {
		list = append(list, effect.HDel(hash, waitField(n)), effect.ZRem(lowestPrefix+d.Key, itoa(n)))
	}
	list = append(list, g.expire(hash)...)
	err := d.Effect(list...)
	if err == nil && s.next != nil {
		err = d.Rouse(s.next.ids...)
	}
	if err != nil {
		return fmt.Errorf("sequence: confirm number %d of %s/%s: %w", n, d.Queue, d.ID, err)
	}
	return nil
}

// expire bounds the life of a state that nobody changes any more.
func (g *gate) expire(names ...string) []effect.Effect {
	var list []effect.Effect
	for _, name := range names {
		if g.cfg.keep > 0 {
			list = append(list, effect.Expire(name, g.cfg.keep))
		}
	}
	return list
}

// seen decides on a number that is not above the last confirmed one.
func (g *gate) seen(ctx context.Context, d *zq.Delivery, n int64, s *state) error {
	if s.skipped.has(n) {
		g.tell(ctx, d, report(Late, d, n, s))
		return zq.Dead(ReasonLate, fmt.Errorf("number %d was skipped; number %d is confirmed", n, s.confirmed))
	}
	g.tell(ctx, d, report(Duplicate, d, n, s))
	return nil
}

// unanswered decides on a message when Redis does not answer. The handler has not started, so that charges no
// attempt; unless the answer will be the same for ever, which somebody should see among the dead letters.
func (g *gate) unanswered(ctx context.Context, d *zq.Delivery, n int64, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err = fmt.Errorf("sequence: number %d of %s/%s: %w", n, d.Queue, d.ID, err)
	if errors.Is(err, zq.ErrLeaseLost) || permanent(err) {
		return err
	}
	if !g.down.Swap(true) {
		g.cfg.logger.Warn("sequence: redis is out of reach; messages are postponed", "error", err)
	}
	g.tell(ctx, d, Report{Outcome: Unavailable, Key: d.Key, Number: n})
	return zq.Postpone(time.Second + rand.N(time.Second)) //nolint:gosec // jitter, not a secret
}

// permanent says that no further try will help: Redis has answered, and not that it cannot for now.
func permanent(err error) bool {
	var refused *zq.EffectError
	if errors.As(err, &refused) || errors.Is(err, zq.ErrInvalid) || errors.Is(err, zq.ErrWrongType) {
		return true
	}
	var answer redis.Error
	if !errors.As(err, &answer) {
		return false
	}
	for _, passing := range []string{"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "OOM"} {
		if strings.HasPrefix(answer.Error(), passing+" ") {
			return false
		}
	}
	return true
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
