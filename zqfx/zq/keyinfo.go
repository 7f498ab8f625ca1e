package zq

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/internal/member"
)

// KeyInfo is an ordering key with messages waiting, or that something holds.
type KeyInfo struct {
	Key string
	// Held is what holds it: the id of a claim, "delayed" while its head waits for its next attempt,
	// "suspect", "halted", or "dying" while its lane goes to the dead letters. Empty when its head can be
	// claimed at once.
	Held string
	// Waiting counts the messages in its lane; Head is the id of the first, "" if there is none.
	Waiting int64
	Head    string
	// Due is when a delayed key goes on.
	Due time.Time
}

// How many keys one step of a walk reads.
const keyPage = 100

// Keys walks the keys: first those that something holds, then those that can be claimed; in no order, and
// while the queue works a key may come twice. What came when the walk began and is still there is met.
func (i *Inspector) Keys(ctx context.Context) iter.Seq2[KeyInfo, error] {
	return func(yield func(KeyInfo, error) bool) {
		for _, walk := range []func(context.Context, uint64) ([]KeyInfo, uint64, error){i.heldKeys, i.freeKeys} {
			for cursor, done := uint64(0), false; !done; done = cursor == 0 {
				var page []KeyInfo
				var err error
				if page, cursor, err = walk(ctx, cursor); err != nil {
					yield(KeyInfo{}, wrap(err, "keys of "+i.queue))
					return
				}
				for _, k := range page {
					if !yield(k, nil) {
						return
					}
				}
			}
		}
	}
}

func (i *Inspector) heldKeys(ctx context.Context, cursor uint64) ([]KeyInfo, uint64, error) {
	page, next, err := i.scripts.Keys(ctx, i.rdb, i.keys, cursor, keyPage)
	out := make([]KeyInfo, len(page))
	for j, k := range page {
		out[j] = KeyInfo{Key: k.Key, Waiting: k.Waiting, Due: microsTime(k.Due)}
		out[j].Held, _, _ = strings.Cut(k.Lock, "|")
		if k.Head != "" {
			out[j].Head = member.Parse(k.Head).ID
		}
	}
	return out, next, err
}

func (i *Inspector) freeKeys(ctx context.Context, cursor uint64) ([]KeyInfo, uint64, error) {
	found, next, err := i.rdb.ZScan(ctx, i.keys.Ready, cursor, "\x00*", keyPage).Result()
	if err != nil {
		return nil, 0, err
	}
	out := make([]KeyInfo, 0, len(found)/2)
	for j := 0; j < len(found); j += 2 { // members and scores in turn
		if key, ok := member.IsEntry(found[j]); ok {
			out = append(out, KeyInfo{Key: key})
		}
	}
	sizes, heads := make([]*redis.IntCmd, len(out)), make([]*redis.StringSliceCmd, len(out))
	if _, err = i.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for j := range out {
			sizes[j] = p.ZCard(ctx, i.keys.Lane(out[j].Key))
			heads[j] = p.ZRange(ctx, i.keys.Lane(out[j].Key), 0, 0)
		}
		return nil
	}); err != nil {
		return nil, 0, fmt.Errorf("lanes: %w", err)
	}
	for j := range out {
		out[j].Waiting = sizes[j].Val()
		if head := heads[j].Val(); len(head) > 0 {
			out[j].Head = member.Parse(head[0]).ID
		}
	}
	return out, next, nil
}
