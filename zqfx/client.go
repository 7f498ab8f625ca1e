package zqfx

import (
	"fmt"

	"github.com/redis/go-redis/v9"
)

// link is the client that an instance works with.
type link struct {
	rdb redis.UniversalClient
	own bool // made here from a URL, and so closed here
}

// offers are the clients that the graph has under one name. Applications provide any of these types; asked for
// one of them alone, fx would give nil for the others.
type offers struct {
	universal redis.UniversalClient
	client    *redis.Client
	cluster   *redis.ClusterClient
}

// pick gives the one that is there; nil if there is none.
func (o offers) pick() (redis.UniversalClient, error) {
	switch {
	case o.universal != nil && isNil(o.universal):
		return nil, invalid("redis client", fmt.Sprintf("a redis.UniversalClient that holds a nil %T", o.universal), "a client, or none")
	case o.universal != nil:
		return o.universal, nil
	case o.client != nil && o.cluster != nil:
		return nil, invalid("redis client", "both a *redis.Client and a *redis.ClusterClient",
			"one of them, or a redis.UniversalClient, or one with the instance's name")
	case o.client != nil:
		return o.client, nil
	case o.cluster != nil:
		return o.cluster, nil
	}
	return nil, nil //nolint:nilnil // no client is no fault: there may be a URL
}

// newLink chooses the client: of the instance's name, else unnamed (default instance), else by the URL. There is
// no other default; a service that works with the wrong Redis is worse than one that does not start. No I/O.
func newLink(i instance, c Config, byName, plain offers) (*link, error) {
	for _, o := range []offers{byName, plain} {
		rdb, err := o.pick()
		if err != nil {
			return nil, fmt.Errorf("zqfx: %s: %w", i, err)
		}
		if rdb != nil {
			return &link{rdb: rdb}, nil
		}
	}
	if c.RedisURL == "" {
		return nil, fmt.Errorf("zqfx: %s has no Redis: provide a redis.UniversalClient, *redis.Client or "+
			"*redis.ClusterClient%s, or set %sREDIS_URL or Config.RedisURL", i, i.acceptedNames(), i.envPrefix())
	}
	t, err := parseRedisURL(c.RedisURL)
	if err != nil {
		return nil, fmt.Errorf("zqfx: %s: %w", i, err)
	}
	return &link{rdb: t.open(), own: true}, nil
}

func (i instance) acceptedNames() string {
	if i == "" {
		return " without a name or with " + i.clientTag()
	}
	return " with " + i.clientTag()
}
