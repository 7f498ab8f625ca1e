package middleware

import (
	"context"
	"errors"

	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/middleware/ratelimit"
	"github.com/zqueue/zqueue/middleware/sequence"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// idempotencyScope names the store that queues share unless they bring one of their own.
const idempotencyScope = "zq"

// Idempotency skips messages whose business key is done, as idempotency.New. The keys are kept in Env.Redis. It is
// not in a standard plan unless given.
func Idempotency(key idempotency.Key, opts ...idempotency.Option) Layer {
	return Layer{role: RoleIdempotency, build: func(at *site) (part, error) {
		if at.Redis == nil {
			return part{}, fault("Env.Redis", "nil", "a client, or IdempotencyIn with a store")
		}
		store, err := idempotency.NewRedisStore(at.Redis, idempotencyScope)
		if err != nil {
			return part{}, err
		}
		return idempotent(at, store, key, opts)
	}}
}

// IdempotencyIn is Idempotency with a store of your own.
func IdempotencyIn(store idempotency.Store, key idempotency.Key, opts ...idempotency.Option) Layer {
	return Layer{role: RoleIdempotency, build: func(at *site) (part, error) {
		return idempotent(at, store, key, opts)
	}}
}

// idempotent tells the layers outside what comes of each message.
func idempotent(at *site, store idempotency.Store, key idempotency.Key, opts []idempotency.Option) (part, error) {
	told := at.outcomes
	all := []idempotency.Option{
		idempotency.Logger(at.Logger),
		idempotency.OnOutcome(func(ctx context.Context, d *zq.Delivery, o idempotency.Outcome, r idempotency.Record) {
			original := ""
			if o == idempotency.Skipped || o == idempotency.InProgress {
				original = r.Owner.ID()
			}
			for _, tell := range told {
				tell(ctx, d, o, original)
			}
		}),
	}
	mw, err := idempotency.New(store, key, append(all, opts...)...)
	return part{mw: mw}, err
}

// RateLimit keeps the queue, or each key of it, to a rate: limit starts a second, and up to burst at once after a pause,
// for all processes together. It is ratelimit.New with ratelimit.Shared in Env.Redis, whose scope is Env.Queue. It is
// not in a standard plan unless given.
func RateLimit(limit float64, burst int, opts ...ratelimit.Option) Layer {
	return Layer{role: RoleRateLimit, build: func(at *site) (part, error) {
		limiter, err := ratelimit.Shared(at.Redis, at.Queue, limit, burst)
		if err != nil {
			// The options are looked at all the same, with a limiter that nobody asks.
			_, other := limited(at, noLimit{}, opts)
			return part{}, errors.Join(err, other)
		}
		return limited(at, limiter, opts)
	}}
}

// RateLimitIn is RateLimit with a limiter of your own, such as ratelimit.Local for this process alone, or one that
// several queues share.
func RateLimitIn(limiter ratelimit.Limiter, opts ...ratelimit.Option) Layer {
	return Layer{role: RoleRateLimit, build: func(at *site) (part, error) { return limited(at, limiter, opts) }}
}

func limited(at *site, limiter ratelimit.Limiter, opts []ratelimit.Option) (part, error) {
	mw, err := ratelimit.New(limiter, append([]ratelimit.Option{ratelimit.Logger(at.Logger)}, opts...)...)
	return part{mw: mw}, err
}

type noLimit struct{ ratelimit.Limiter }

// Sequence runs messages in the order of the numbers that producers gave them, as sequence.New. The state is kept
// in Env.Queue's namespace in Env.Redis. It is not in a standard plan unless given.
func Sequence(opts ...sequence.Option) Layer {
	return Layer{role: RoleSequence, build: func(at *site) (part, error) {
		all := append([]sequence.Option{sequence.Logger(at.Logger)}, opts...)
		mw, err := sequence.New(at.Redis, at.Queue, all...)
		return part{mw: mw}, err
	}}
}
