package idempotency

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware/internal/luascript"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// The scripts, read by the compiler; record stands in front of the others.
var (
	//go:embed lua/record.lua
	recordText string
	//go:embed lua/begin.lua
	beginText string
	//go:embed lua/finish.lua
	finishText string
)

// Bounds of a RedisStore.
const (
	DefaultShards = 16
	MaxShards     = 1024
	// MaxFence is the highest fence that a store takes: Lua's numbers are exact up to there.
	MaxFence = int64(1)<<53 - 1
)

// RedisStore is a Store in Redis 7.0 or newer, a single server or a Cluster. It is safe for concurrent use. It uses
// the client that it was given, with that client's timeouts, and does not close it.
type RedisStore struct {
	rdb           redis.UniversalClient
	prefix        string
	shards        uint32
	begin, finish luascript.Script
}

// StoreOption configures a RedisStore.
type StoreOption interface{ applyStore(*RedisStore) }

type storeOption func(*RedisStore)

func (f storeOption) applyStore(s *RedisStore) { f(s) }

// Shards sets over how many Cluster slots the keys spread, from 1 to MaxShards, DefaultShards unless set. All users
// of a store must agree; with another number nothing that was recorded before is found.
func Shards(n int) StoreOption {
	return storeOption(func(s *RedisStore) { s.shards = uint32(min(max(n, 0), MaxShards+1)) }) //nolint:gosec // bounded
}

const scopeWant = "1 to 128 bytes of [A-Za-z0-9._-]"

// validScope holds queue names to the rule that they have anyway. It is asked twice for each delivery, so by hand.
func validScope(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return s != "" && len(s) <= 128
}

// NewRedisStore makes a store. scope names it in Redis and keeps apart what must not meet, such as two applications
// on one server: 1 to 128 bytes of [A-Za-z0-9._-]. It lists all that is wrong with its arguments, as
// *zq.InvalidError, and does no I/O.
func NewRedisStore(rdb redis.UniversalClient, scope string, opts ...StoreOption) (*RedisStore, error) {
	s := &RedisStore{
		rdb: rdb, prefix: "zq:{idem/" + scope + "/", shards: DefaultShards,
		begin: luascript.New(recordText, beginText), finish: luascript.New(recordText, finishText),
	}
	for _, o := range opts {
		if o != nil {
			o.applyStore(s)
		}
	}
	var faults []error
	if rdb == nil {
		faults = append(faults, invalid("idempotency.store client", "nil", "a redis client"))
	}
	if !validScope(scope) {
		faults = append(faults, invalid("idempotency.store scope", strconv.Quote(scope), scopeWant))
	}
	if s.shards < 1 || s.shards > MaxShards {
		faults = append(faults, invalid("idempotency.Shards", s.shards, fmt.Sprintf("1 to %d", MaxShards)))
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return s, nil
}

// Begin is Store's. One call is one round trip, two after the server has lost its scripts.
func (s *RedisStore) Begin(ctx context.Context, claims []Claim) []Answer {
	answers := make([]Answer, len(claims))
	plan := s.plan(len(claims), answers, func(i int) (Name, []any, error) {
		c := &claims[i]
		return c.Name, []any{millis(c.For), c.Owner.wire()}, c.fault()
	})
	plan.run(ctx, s.rdb, s.begin, 1, func(head []any, words []any, a *Answer) {
		a.read(words)
		if a.Record.State == StateNone {
			return
		}
		left, _ := words[2].(int64)
		a.Record.Expires = time.Duration(max(left, 0)) * time.Millisecond
		now, _ := strconv.ParseInt(text(head[0]), 10, 64)
		a.Record.Age = max(time.UnixMicro(now).Sub(a.Record.Since), 0)
	})
	return answers
}

// Finish is Store's. One call is one round trip, two after the server has lost its scripts.
func (s *RedisStore) Finish(ctx context.Context, endings []Ending) []Answer {
	answers := make([]Answer, len(endings))
	plan := s.plan(len(endings), answers, func(i int) (Name, []any, error) {
		e := &endings[i]
		letter, payload := e.letter()
		return e.Name, []any{letter, millis(e.Keep), e.Owner.wire(), payload}, e.fault()
	})
	plan.run(ctx, s.rdb, s.finish, 0, func(_, words []any, a *Answer) { a.read(words) })
	return answers
}

// Look is Store's, one round trip.
func (s *RedisStore) Look(ctx context.Context, name Name) (Record, error) {
	key, _ := s.key(name)
	pipe := s.rdb.Pipeline() // no transaction: a server that is out of memory refuses even one that only reads
	value, left := pipe.Get(ctx, key), pipe.PTTL(ctx, key)
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		if redis.HasErrorPrefix(err, "WRONGTYPE") {
			return Record{}, errForeign
		}
		return Record{}, fmt.Errorf("idempotency: look: %w", err)
	}
	r, err := readRecord(value.Val())
	if err == nil && r.State != StateNone {
		r.Expires = max(left.Val(), 0)
	}
	return r, err
}

// Forget is Store's, one round trip.
func (s *RedisStore) Forget(ctx context.Context, name Name) error {
	key, _ := s.key(name)
	if err := s.rdb.Del(ctx, key).Err(); err != nil {
		return fmt.Errorf("idempotency: forget: %w", err)
	}
	return nil
}

// key is a name's key in Redis, and its shard. A scope has no colon and no brace, so no two names share a key, and
// what the business key is made of does not move the hash tag.
func (s *RedisStore) key(name Name) (string, uint32) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name.Scope + ":" + name.Key)) // never fails
	shard := h.Sum32() % s.shards
	return s.prefix + strconv.FormatUint(uint64(shard), 10) + "}:" + name.Scope + ":" + name.Key, shard
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// millis rounds up, so that no duration becomes none.
func millis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

func invalid(field string, value any, want string) *zq.InvalidError {
	return &zq.InvalidError{Field: field, Value: fmt.Sprint(value), Want: want}
}
