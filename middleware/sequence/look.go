package sequence

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// State is what is known of an ordering key.
type State struct {
	// Known says that a number was confirmed; Confirmed is the last one.
	Known     bool
	Confirmed int64
	// Skipped are the ranges that GapSkip has given up on, ascending.
	Skipped []Range
	// Waiting counts the numbers that wait for their predecessor; Lowest is the lowest of them, 0 if there is none.
	Waiting, Lowest int64
}

// Look reads the state of an ordering key, for a person or a test: it may be out of date when it is there.
func Look(ctx context.Context, rdb redis.UniversalClient, queue, key string) (State, error) {
	hash, waiting := zq.EffectKey(queue, hashPrefix+key), zq.EffectKey(queue, lowestPrefix+key)
	var values *redis.SliceCmd
	var count *redis.IntCmd
	var lowest *redis.StringSliceCmd
	_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		values = p.HMGet(ctx, hash, fieldLast, fieldSkipped)
		count, lowest = p.ZCard(ctx, waiting), p.ZRange(ctx, waiting, 0, 0)
		return nil
	})
	if err != nil {
		return State{}, fmt.Errorf("sequence: look at a key of %s: %w", queue, err)
	}
	s, err := readState(append(values.Val(), nil, nil), 1)
	if err != nil {
		return State{}, err
	}
	st := State{Known: s.known, Skipped: s.skipped, Waiting: count.Val()}
	if s.known {
		st.Confirmed = s.confirmed
	}
	if low := lowest.Val(); len(low) > 0 {
		st.Lowest, err = parseNumber(low[0])
	}
	return st, err
}
