package zqfx

import (
	"context"
	"log/slog"
	"strings"

	"github.com/redis/go-redis/v9"
)

// checkEviction warns of a Redis that may drop a queue's keys when its memory is full. Where it may not be asked,
// or does not know the question, that is no more than a line for who debugs.
func checkEviction(ctx context.Context, rdb redis.UniversalClient, log *slog.Logger) {
	policy, err := ask(ctx, func(ctx context.Context) (string, error) { return evictionPolicy(ctx, rdb) })
	switch {
	case err != nil:
		log.Debug("zqfx: cannot ask for the eviction policy", "error", err)
	case policy == "":
		log.Debug("zqfx: the server does not tell its eviction policy")
	case policy != "noeviction":
		log.Warn("zqfx: Redis may evict queued messages when its memory is full; set maxmemory-policy to noeviction",
			"maxmemory_policy", policy)
	}
}

// evictionPolicy asks in the two ways there are: managed servers often refuse CONFIG.
func evictionPolicy(ctx context.Context, rdb redis.UniversalClient) (string, error) {
	const setting = "maxmemory-policy"
	if found, err := rdb.ConfigGet(ctx, setting).Result(); err == nil && found[setting] != "" {
		return found[setting], nil
	}
	info, err := rdb.Info(ctx, "memory").Result()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(info) {
		if policy, ok := strings.CutPrefix(strings.TrimSpace(line), "maxmemory_policy:"); ok {
			return policy, nil
		}
	}
	return "", nil
}
