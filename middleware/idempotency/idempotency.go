package idempotency

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zqueue/zqueue/middleware/internal/groupcommit"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// ErrTaken ends the context of a handler whose mark somebody else holds: it could not be renewed for so long that it
// expired, or the message was delivered again. Ask context.Cause.
var ErrTaken = errors.New("idempotency: the key was taken over")

// New makes the middleware. It belongs inside retry, so that a skip is a success. It lists all that is wrong with
// its arguments, as *zq.InvalidError, does no I/O and starts nothing. One middleware can serve several handlers and
// consumers, whose calls it then groups together; it is safe for concurrent use.
func New(store Store, key Key, opts ...Option) (zq.Middleware, error) {
	g, err := newGuard(store, key, opts)
	if err != nil {
		return nil, err
	}
	return func(next zq.Handler) zq.Handler {
		return zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error { return g.handle(ctx, d, next) })
	}, nil
}

// guard is the middleware.
type guard struct {
	cfg     *config
	key     Key
	begins  groupcommit.Group[Claim, Answer]
	ends    groupcommit.Group[Ending, Answer]
	heart   *heart
	outages outage
}

func newGuard(store Store, key Key, opts []Option) (*guard, error) {
	cfg, err := newConfig(opts)
	if store == nil {
		err = errors.Join(invalid("idempotency store", "nil", "a Store"), err)
	}
	if err = errors.Join(err, key.check()); err != nil {
		return nil, err
	}
	g := &guard{cfg: cfg, key: key}
	g.begins.Name, g.begins.Send, g.begins.Weigh = "idempotency", store.Begin, Claim.weight
	g.ends.Name, g.ends.Send, g.ends.Weigh = "idempotency", store.Finish, Ending.weight
	g.heart = newHeart(cfg.running/3, g.renew)
	g.outages = outage{now: time.Now, tell: cfg.hooks.tellStore, logger: cfg.hooks.logger}
	return g, nil
}

func (g *guard) handle(ctx context.Context, d *zq.Delivery, next zq.Handler) error {
	key, err := g.key.of(ctx, d)
	if err != nil {
		return err
	}
	if key == "" {
		return g.unkeyed(ctx, d, next)
	}
	scope := g.cfg.scope
	if scope == "" {
		scope = d.Queue
	}
	c := Claim{Name: Name{Scope: scope, Key: key}, Owner: ownerOf(d), For: g.cfg.running}
	a := answered(g.begins.Join(ctx, c))
	switch {
	case a.Err != nil:
		return g.unanswered(ctx, d, a.Err)
	case a.Granted:
		g.outages.answered()
		return g.run(ctx, d, next, c)
	}
	g.outages.answered()
	if a.Record.State == StateDone {
		err := g.cfg.hooks.asked(ctx, d, a.Record)
		g.cfg.hooks.told(ctx, d, Skipped, a.Record)
		return err
	}
	g.cfg.hooks.told(ctx, d, InProgress, a.Record)
	return zq.Postpone(g.busyDelay(a.Record))
}

// answered is an answer that has its error with it.
func answered(a Answer, err error) Answer {
	if err != nil {
		a.Err = err
	}
	return a
}

// renew begins what has begun.
func (g *guard) renew(claims []Claim) []Answer {
	answers, err := g.begins.Step(claims)
	if err != nil {
		answers = slices.Repeat([]Answer{{Err: err}}, len(claims))
	}
	return answers
}

// ownerOf names the run. The sequence tells a message from a later one that was given the same id.
func ownerOf(d *zq.Delivery) Owner {
	name := d.Queue + "/" + d.ID + "#" + strconv.FormatInt(d.Sequence, 10)
	if len(name) > MaxKey { // a plain member can have any length
		sum := sha256.Sum256([]byte(name))
		name = d.Queue + "/sha256:" + hex.EncodeToString(sum[:])
	}
	return Owner{Message: name, Fence: d.Fence()}
}

// ID is the id of the owner's message; empty for one that has none but its body.
func (o Owner) ID() string {
	_, id, named := strings.Cut(o.Message, "/")
	at := strings.LastIndexByte(id, '#')
	if !named || at < 0 || id[at:] == "#0" {
		return ""
	}
	return id[:at]
}

func (g *guard) unkeyed(ctx context.Context, d *zq.Delivery, next zq.Handler) error {
	g.cfg.hooks.told(ctx, d, Unkeyed, Record{})
	if g.cfg.requireKey {
		return zq.Dead(ReasonNoKey, errors.New("idempotency: the message has no business key"))
	}
	return next.Handle(withRun(ctx, &run{}), d)
}

// unanswered decides about a message when the store does not answer. The handler has not started, so that charges
// no attempt; unless the answer will be the same for ever, which somebody should see among the dead letters.
func (g *guard) unanswered(ctx context.Context, d *zq.Delivery, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if permanent(err) {
		return fmt.Errorf("idempotency: begin %s/%s: %w", d.Queue, d.ID, err)
	}
	wait := g.outages.failed(err)
	g.cfg.hooks.told(ctx, d, Unavailable, Record{})
	return zq.Postpone(wait)
}

// permanent says that no further try will help.
func permanent(err error) bool {
	return errors.Is(err, zq.ErrInvalid) || errors.Is(err, zq.ErrWrongType)
}

// busyDelay is how long to wait for a key that somebody else holds: about as long as that one has had it, so that a
// long run is asked for rarely and a short one waited for shortly; but not beyond the end of its mark.
func (g *guard) busyDelay(r Record) time.Duration {
	d := min(r.Age, r.Expires+g.cfg.busyLeast, g.cfg.busyMost)
	d += rand.N(d/4 + 1) //nolint:gosec // jitter, not a secret
	return min(max(d, g.cfg.busyLeast), g.cfg.busyMost)
}
