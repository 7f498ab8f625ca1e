package zq_test

import (
	"context"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

func noop(context.Context, *zq.Delivery) error { return nil }

func TestConsumerConfigRanges(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	const tiny, huge = math.MinInt, math.MaxInt
	cases := []struct {
		field     string
		good, bad []any
	}{
		{"Concurrency", []any{0, 1, 10_000}, []any{-1, 10_001, tiny, huge}},
		{"ClaimAhead", []any{0, zq.Unlimited, 1, 10_000}, []any{-2, 10_001, tiny, huge}},
		{"KeyPrefetch", []any{0, 1, 1000}, []any{-1, 1001, tiny, huge}},
		{"MaxAttempts", []any{0, 1, 1_000_000}, []any{-1, 1_000_001, tiny, huge}},
		{"MaxLosses", []any{0, 1, 1000}, []any{-1, 1001, tiny, huge}},
		{"DeadMax", []any{0, 1, 1<<31 - 1}, []any{-1, 1 << 31, tiny, huge}},
		{"DedupeMax", []any{0, 1000, 1<<31 - 1}, []any{-1, 999, 1 << 31, tiny, huge}},
		{
			"Lease", []any{time.Duration(0), zq.MinLease, zq.MaxLease},
			[]any{time.Duration(-1), zq.MinLease - 1, zq.MaxLease + 1, time.Duration(1), time.Duration(huge)},
		},
		{
			"MaxRun", []any{time.Duration(0), time.Duration(zq.Unlimited), time.Millisecond, zq.MaxDelay},
			[]any{time.Duration(-2), time.Duration(1), 999 * time.Microsecond, zq.MaxDelay + 1},
		},
		{
			"Grace", []any{time.Duration(0), time.Millisecond, day},
			[]any{time.Duration(-1), 999 * time.Microsecond, day + 1},
		},
		{
			"DrainTime", []any{time.Duration(0), time.Millisecond, day},
			[]any{time.Duration(-1), 999 * time.Microsecond, day + 1},
		},
		{
			"DeadRetention", []any{time.Duration(0), time.Minute, zq.MaxDelay},
			[]any{time.Duration(-1), time.Minute - 1, zq.MaxDelay + 1},
		},
		{"OnFailure", []any{zq.BlockKey, zq.SkipKey}, []any{zq.FailurePolicy(-1), zq.FailurePolicy(2)}},
		{"OnDeath", []any{zq.Continue, zq.HaltKey, zq.DeadLetterKey}, []any{zq.DeathPolicy(-1), zq.DeathPolicy(3)}},
	}
	rdb := nowhere(t)
	try := func(field string, v any) error {
		var cfg zq.ConsumerConfig
		reflect.ValueOf(&cfg).Elem().FieldByName(field).Set(reflect.ValueOf(v))
		_, err := zq.NewConsumer(rdb, "q", zq.HandlerFunc(noop), cfg)
		return err
	}
	for _, c := range cases {
		for _, v := range c.good {
			if err := try(c.field, v); err != nil {
				t.Errorf("%s %v: %v", c.field, v, err)
			}
		}
		for _, v := range c.bad {
			err := try(c.field, v)
			if wantFaults(t, err, "config."+c.field); err == nil {
				t.Errorf("%s %v is taken", c.field, v)
			}
		}
	}
}

// Every field that has a range is in the table above, and every fault is said at once.
func TestConsumerConfigAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	var cfg zq.ConsumerConfig
	var fields []string
	v := reflect.ValueOf(&cfg).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.CanInt() {
			f.SetInt(-7)
			fields = append(fields, "config."+v.Type().Field(i).Name)
		}
	}
	if len(fields) != 14 {
		t.Errorf("%d fields with a range; the table of TestConsumerConfigRanges has 14", len(fields))
	}
	_, err := zq.NewConsumer(nowhere(t), "q", zq.HandlerFunc(noop), cfg)
	wantFaults(t, err, fields...)
}

// The ordered configuration has every field of the other but those that break order, of the same type, and
// hands each on.
func TestOrderedConfigIsNarrower(t *testing.T) {
	t.Parallel()
	breaksOrder := []string{"ClaimAhead", "OnFailure"}
	wide, narrow := reflect.TypeFor[zq.ConsumerConfig](), reflect.TypeFor[zq.OrderedConfig]()
	for i := range wide.NumField() {
		f := wide.Field(i)
		g, has := narrow.FieldByName(f.Name)
		if has == slices.Contains(breaksOrder, f.Name) {
			t.Errorf("OrderedConfig has %s: %v", f.Name, has)
		}
		if has && g.Type != f.Type {
			t.Errorf("%s is a %v here and a %v there", f.Name, f.Type, g.Type)
		}
	}
	var cfg zq.OrderedConfig
	var fields []string
	v := reflect.ValueOf(&cfg).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.CanInt() {
			f.SetInt(-7)
			fields = append(fields, "config."+narrow.Field(i).Name)
		}
	}
	_, err := zq.NewOrderedConsumer(nowhere(t), "q", zq.HandlerFunc(noop), cfg)
	wantFaults(t, err, fields...)
}

func TestProducerOptionRanges(t *testing.T) {
	t.Parallel()
	cases := []struct {
		field     string
		good, bad []zq.ProducerOption
	}{
		{
			"dedupe window",
			[]zq.ProducerOption{zq.WithDedupeWindow(0), zq.WithDedupeWindow(1), zq.WithDedupeWindow(zq.MaxDedupeWindow)},
			[]zq.ProducerOption{zq.WithDedupeWindow(-1), zq.WithDedupeWindow(zq.MaxDedupeWindow + 1)},
		},
		{
			"max body",
			[]zq.ProducerOption{zq.WithMaxBody(1), zq.WithMaxBody(zq.HardMaxBody)},
			[]zq.ProducerOption{zq.WithMaxBody(0), zq.WithMaxBody(-1), zq.WithMaxBody(zq.HardMaxBody + 1)},
		},
		{
			"min replicas",
			[]zq.ProducerOption{zq.MinReplicas(0, 0), zq.MinReplicas(0, -1), zq.MinReplicas(1, time.Second), zq.MinReplicas(100, time.Second)},
			[]zq.ProducerOption{zq.MinReplicas(-1, time.Second), zq.MinReplicas(101, time.Second)},
		},
		{
			"min replicas wait",
			[]zq.ProducerOption{zq.MinReplicas(1, time.Millisecond), zq.MinReplicas(1, time.Minute)},
			[]zq.ProducerOption{
				zq.MinReplicas(1, 0), zq.MinReplicas(1, -1), zq.MinReplicas(1, 999*time.Microsecond), zq.MinReplicas(1, time.Minute+1),
			},
		},
	}
	rdb := nowhere(t)
	for _, c := range cases {
		for i, o := range c.good {
			if _, err := zq.NewProducer(rdb, "q", o); err != nil {
				t.Errorf("%s, good %d: %v", c.field, i, err)
			}
		}
		for i, o := range c.bad {
			_, err := zq.NewProducer(rdb, "q", o)
			if wantFaults(t, err, c.field); err == nil {
				t.Errorf("%s, bad %d is taken", c.field, i)
			}
		}
	}
	_, err := zq.NewProducer(rdb, "q", zq.WithDedupeWindow(-1), zq.WithMaxBody(0), zq.MinReplicas(101, 0))
	wantFaults(t, err, "dedupe window", "max body", "min replicas", "min replicas wait")
}

func TestNewConsumerDoesNoIO(t *testing.T) {
	t.Parallel()
	c, err := zq.NewConsumer(nowhere(t), strings.Repeat("q", 128), zq.HandlerFunc(noop), zq.ConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if state, trouble := c.Health(); state != "new" || trouble != nil {
		t.Errorf("health of a new consumer: %s %v", state, trouble)
	}
	if got := c.Stats(); got != (zq.ConsumerStats{}) {
		t.Errorf("stats of a new consumer: %+v", got)
	}
	if err := c.Stop(context.Background()); err != nil {
		t.Errorf("stop of a new consumer: %v", err)
	}
}
