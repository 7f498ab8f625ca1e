package integration_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// dump is what lies under the queue's keys, but for the wake-up marker, which comes and goes by itself.
func (x *trial) dump() map[string]any {
	x.t.Helper()
	ctx, out := x.t.Context(), map[string]any{}
	it := x.rdb.Scan(ctx, 0, x.key("*"), 1000).Iterator()
	for it.Next(ctx) {
		name := it.Val()
		if name == x.key("wake") {
			continue
		}
		kind, err := x.rdb.Type(ctx, name).Result()
		x.must(err)
		switch kind {
		case "zset":
			out[name], err = x.rdb.ZRangeWithScores(ctx, name, 0, -1).Result()
		case "hash":
			out[name], err = x.rdb.HGetAll(ctx, name).Result()
		case "string":
			out[name], err = x.rdb.Get(ctx, name).Result()
		default:
			out[name] = kind
		}
		x.must(err)
	}
	x.must(it.Err())
	return out
}

// unchanged does something that must leave the queue's keys alone.
func (x *trial) unchanged(what string, do func()) {
	x.t.Helper()
	before := x.dump()
	do()
	if diff := cmp.Diff(before, x.dump()); diff != "" {
		x.t.Errorf("%s changed the queue (-before +after):\n%s", what, diff)
	}
}

// clean expects that Verify finds nothing.
func (x *trial) clean(what string) {
	x.t.Helper()
	r, err := x.look.Verify(x.t.Context(), 0)
	x.must(err)
	if len(r.Problems) > 0 {
		x.t.Errorf("%s: verify of %d messages:\n  %s", what, r.Messages, strings.Join(r.Problems, "\n  "))
	}
}

// echoes starts a consumer that acks everything, and hands on what it got.
func (x *trial) echoes() <-chan *zq.Delivery {
	x.t.Helper()
	got := make(chan *zq.Delivery, 100)
	x.start(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		got <- d
		return nil
	}), zq.ConsumerConfig{})
	return got
}

// settled waits until no claim is held, so that what was delivered is recorded.
func (x *trial) settled() {
	x.t.Helper()
	zqt.Eventually(x.t, patience, func() bool {
		n, err := x.rdb.ZCard(x.t.Context(), x.key("leases")).Result()
		return err == nil && n == 0
	}, "all claims settled")
}

// same compares a delivery with the message that it should be.
func same(t *testing.T, what string, m zq.Message, d *zq.Delivery) {
	t.Helper()
	if d.ID != m.ID || d.Key != m.Key || d.Kind != m.Kind || d.ContentType != m.ContentType || !bytes.Equal(d.Body, m.Body) ||
		!maps.Equal(d.Headers, m.Headers) {
		t.Errorf("%s: sent %.200q, delivered %.200q with key %q, kind %q, type %q, headers %q, body of %d bytes", what, m.ID, d.ID,
			d.Key, d.Kind, d.ContentType, d.Headers, len(d.Body))
	}
}

// invalidField expects an *InvalidError that names the field.
func invalidField(t *testing.T, what string, err error, field string) {
	t.Helper()
	var wrong *zq.InvalidError
	if !errors.As(err, &wrong) || !errors.Is(err, zq.ErrInvalid) || wrong.Field != field {
		t.Errorf("%s: %v, want an *InvalidError of %s", what, err, field)
	}
}

// put adds a plain member, as redis-cli would.
func (x *trial) put(set string, score float64, member string) {
	x.t.Helper()
	x.must(x.rdb.ZAdd(x.t.Context(), x.key(set), redis.Z{Score: score, Member: member}).Err())
	x.must(x.rdb.ZAdd(x.t.Context(), x.key("wake"), redis.Z{Member: "w"}).Err())
}
