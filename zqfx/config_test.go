package zqfx_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// A file has each field under its name in lower case, and the environment in upper case.
func TestConfigFieldsAreCalledTheSameInFilesAndTheEnvironment(t *testing.T) {
	t.Parallel()
	for _, typ := range []reflect.Type{reflect.TypeFor[zqfx.Config](), reflect.TypeFor[zqfx.QueueConfig]()} {
		for field := range typ.Fields() {
			want := snake(field.Name)
			if got := field.Tag.Get("yaml"); got != want {
				t.Errorf("%s.%s is %q in YAML, want %q", typ.Name(), field.Name, got, want)
			}
			if typ != reflect.TypeFor[zqfx.Config]() {
				continue
			}
			if got := field.Tag.Get("env"); got != strings.ToUpper(want) {
				t.Errorf("%s.%s is %q in the environment, want %q", typ.Name(), field.Name, got, strings.ToUpper(want))
			}
		}
	}
}

func snake(name string) string {
	var b strings.Builder
	for i, r := range strings.ReplaceAll(name, "URL", "Url") {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func TestConfigValidateListsAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	queues := func(q zqfx.QueueConfig) zqfx.Config {
		return zqfx.Config{Queues: map[string]zqfx.QueueConfig{"orders": q}}
	}
	cases := map[string]zqfx.Config{ // by what the error says
		"config.RedisURL":                          {RedisURL: "localhost"},
		"config.ShutdownTimeout is 99ms":           {ShutdownTimeout: 99 * time.Millisecond},
		"config.ShutdownTimeout is 24h0m0.001s":    {ShutdownTimeout: zqfx.MaxShutdownTimeout + time.Millisecond},
		"config.ShutdownReserve is -1ns":           {ShutdownReserve: -1},
		"config.ShutdownReserve is 25h0m0s":        {ShutdownReserve: 25 * time.Hour},
		`config.OnFatal is "explode"`:              {OnFatal: "explode"},
		`config.Queues["a:b"]`:                     {Queues: map[string]zqfx.QueueConfig{"a:b": {}}},
		"OnFailure is skip":                        queues(zqfx.QueueConfig{OnFailure: "skip"}),
		"OnDeath is halt":                          queues(zqfx.QueueConfig{OnDeath: "halt"}),
		"OnFailure is SkipKey":                     queues(zqfx.QueueConfig{Ordered: true, OnFailure: "skip-key"}),
		"ClaimAhead is 5, want nothing in an":      queues(zqfx.QueueConfig{Strict: true, ClaimAhead: 5}),
		`Queues["orders"]: zq: config.Concurrency`: queues(zqfx.QueueConfig{Concurrency: -1}),
	}
	for want, c := range cases {
		err := c.Validate()
		if err == nil {
			t.Errorf("no error; want %q", want)
			continue
		}
		mentions(t, err.Error(), want)
	}
	all := zqfx.Config{
		RedisURL: "localhost", ShutdownTimeout: -1, ShutdownReserve: -1, OnFatal: "explode",
		Queues: map[string]zqfx.QueueConfig{
			"a": {Concurrency: -1, Lease: 1, OnFailure: "no", OnDeath: "no", MaxBody: -1, MinReplicas: -1},
			"b": {Strict: true, OnFailure: "skip-key", ClaimAhead: 1}, "": {MaxRun: -2},
		},
	}
	mentions(t, all.Validate().Error(), "RedisURL", "ShutdownTimeout", "ShutdownReserve", "OnFatal", `Queues["a"]`,
		"Concurrency", "Lease",
		"OnFailure is no", "OnDeath is no", "max body", `Queues["a"]: zq: min replicas`, `Queues["b"]`, "SkipKey",
		`Queues["b"]: zq: ClaimAhead`, `Queues[""]`, "MaxRun")
	for _, c := range []zqfx.Config{
		{}, {OnFatal: "degrade"}, {ShutdownTimeout: zqfx.MinShutdownTimeout}, {ShutdownTimeout: zqfx.MaxShutdownTimeout},
	} {
		if err := c.Validate(); err != nil {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// setting is one setting of a queue in its three forms.
type setting struct {
	option zqfx.QueueOption
	config zqfx.QueueConfig
	want   zq.ConsumerConfig
}

func settings() map[string]setting {
	type (
		queue    = zqfx.QueueConfig
		consumer = zq.ConsumerConfig
	)
	const ms = time.Millisecond
	return map[string]setting{
		"Concurrency": {zqfx.Concurrency(3), queue{Concurrency: 3}, consumer{Concurrency: 3}},
		"ClaimAhead":  {zqfx.ClaimAhead(4), queue{ClaimAhead: 4}, consumer{ClaimAhead: 4}},
		"KeyPrefetch": {zqfx.KeyPrefetch(5), queue{KeyPrefetch: 5}, consumer{KeyPrefetch: 5}},
		"MaxAttempts": {zqfx.MaxAttempts(6), queue{MaxAttempts: 6}, consumer{MaxAttempts: 6}},
		"MaxLosses":   {zqfx.MaxLosses(7), queue{MaxLosses: 7}, consumer{MaxLosses: 7}},
		"Lease":       {zqfx.Lease(time.Minute), queue{Lease: time.Minute}, consumer{Lease: time.Minute}},
		"MaxRun":      {zqfx.MaxRun(ms), queue{MaxRun: ms}, consumer{MaxRun: ms}},
		"OnFailure":   {zqfx.OnFailure(zq.SkipKey), queue{OnFailure: "skip-key"}, consumer{OnFailure: zq.SkipKey}},
		"OnDeath":     {zqfx.OnDeath(zq.HaltKey), queue{OnDeath: "halt-key"}, consumer{OnDeath: zq.HaltKey}},
		"OnDeath dead": {zqfx.OnDeath(zq.DeadLetterKey), queue{OnDeath: "dead-letter-key"},
			consumer{OnDeath: zq.DeadLetterKey}},
		"ConfirmEach":   {zqfx.ConfirmEach(), queue{ConfirmEach: true}, consumer{ConfirmEach: true}},
		"DeadRetention": {zqfx.DeadRetention(time.Hour), queue{DeadRetention: time.Hour}, consumer{DeadRetention: time.Hour}},
		"DeadMax":       {zqfx.DeadMax(9), queue{DeadMax: 9}, consumer{DeadMax: 9}},
		"DedupeMax":     {zqfx.DedupeMax(2000), queue{DedupeMax: 2000}, consumer{DedupeMax: 2000}},
		"Grace":         {zqfx.Grace(time.Second), queue{Grace: time.Second}, consumer{Grace: time.Second}},
		"DrainTime":     {zqfx.DrainTime(time.Second), queue{DrainTime: time.Second}, consumer{DrainTime: time.Second}},
	}
}

// consumerOf is the configuration of the consumer of orders, without what the module adds to every one.
func consumerOf(t *testing.T, opts ...fx.Option) zq.ConsumerConfig {
	t.Helper()
	var w *zqfx.Worker
	built(t, append(opts, shared(t), plain(), zqfx.Module(), zqfx.HandleFunc("orders", Placed, nothing), fx.Populate(&w))...)
	_, c, err := w.Handler("orders")
	if err != nil {
		t.Fatal(err)
	}
	c.Logger, c.Observers = nil, nil
	return c
}

func TestConfigEachSettingReachesTheConsumerByCodeAndByConfiguration(t *testing.T) {
	t.Parallel()
	usual := consumerOf(t)
	seen := map[string]bool{
		"Ordered": true, "Strict": true, "DedupeWindow": true, "MaxBody": true, "MinReplicas": true, "MinReplicasWithin": true,
		"Consume": true, // of producers, and the rest in tests of their own
	}
	for name, s := range settings() {
		if s.want.Grace == 0 {
			s.want.Grace = usual.Grace
		}
		if s.want.DrainTime == 0 {
			s.want.DrainTime = usual.DrainTime
		}
		if name == "Grace" { // the drain has the rest
			s.want.DrainTime = usual.DrainTime + usual.Grace - s.want.Grace
		}
		byCode := consumerOf(t, zqfx.Queue("orders", s.option))
		byConfig := consumerOf(t, configured(func(c *zqfx.Config) {
			c.Queues = map[string]zqfx.QueueConfig{"orders": s.config}
		}))
		for how, got := range map[string]zq.ConsumerConfig{"code": byCode, "configuration": byConfig} {
			if diff := cmp.Diff(s.want, got, cmpopts.IgnoreFields(zq.ConsumerConfig{}, "RetryDelay")); diff != "" {
				t.Errorf("%s by %s (-want +got):\n%s", name, how, diff)
			}
		}
		for field, v := range reflect.ValueOf(s.config).Fields() {
			seen[field.Name] = seen[field.Name] || !v.IsZero()
		}
	}
	for field := range reflect.TypeFor[zqfx.QueueConfig]().Fields() {
		if !seen[field.Name] {
			t.Errorf("%s is not in this test", field.Name)
		}
	}
}

func TestConfigCodeComesBeforeTheEnvironmentBeforeTheDefault(t *testing.T) {
	t.Setenv("ZQ_QUEUES", "orders:7")
	if got := consumerOf(t, zqfx.Queue("orders", zqfx.Concurrency(3))).Concurrency; got != 3 {
		t.Errorf("concurrency %d by code, want 3", got)
	}
	if got := consumerOf(t).Concurrency; got != 7 {
		t.Errorf("concurrency %d by the environment, want 7", got)
	}
	t.Setenv("ZQ_QUEUES", "")
	if got := consumerOf(t).Concurrency; got != 0 { // which is zq's default
		t.Errorf("concurrency %d by default, want zq's", got)
	}
}

func TestConfigRetryDelayReachesTheConsumer(t *testing.T) {
	t.Parallel()
	delay := func(*zq.Delivery, error) time.Duration { return 42 }
	got := consumerOf(t, zqfx.Queue("orders", zqfx.RetryDelay(delay))).RetryDelay
	if got == nil || got(nil, nil) != 42 {
		t.Error("the consumer has another retry delay")
	}
}

// A zero that somebody wrote is not taken for a setting that nobody made.
func TestConfigZeroInCodeIsRefusedAsWritten(t *testing.T) {
	t.Parallel()
	zeros := map[string]zqfx.QueueOption{
		"Concurrency is 0": zqfx.Concurrency(0), "ClaimAhead is 0": zqfx.ClaimAhead(0), "KeyPrefetch is 0": zqfx.KeyPrefetch(0),
		"MaxAttempts is 0": zqfx.MaxAttempts(0), "MaxLosses is 0": zqfx.MaxLosses(0), "Lease is 0s": zqfx.Lease(0),
		"MaxRun is 0s": zqfx.MaxRun(0), "Grace is 0s": zqfx.Grace(0), "DrainTime is 0s": zqfx.DrainTime(0),
		"DeadRetention is 0s": zqfx.DeadRetention(0), "DeadMax is 0": zqfx.DeadMax(0), "DedupeMax is 0": zqfx.DedupeMax(0), "MaxBody is 0": zqfx.MaxBody(0),
		"MinReplicas is 0": zqfx.MinReplicas(0, time.Second), "MinReplicasWithin is 0s": zqfx.MinReplicas(1, 0),
	}
	for want, option := range zeros {
		mentions(t, failed(t, zqfx.Queue("orders", option)), want, "config_test.go:", `Queue("orders")`)
	}
}

// Faults that only the code and the configuration make together are told with the line of the code.
func TestConfigThatContradictsTheCodeIsRefused(t *testing.T) {
	t.Parallel()
	got := failed(t, shared(t), zqfx.Module(), zqfx.Queue("orders", zqfx.Ordered()), zqfx.HandleFunc("orders", Placed, nothing),
		configured(func(c *zqfx.Config) { c.Queues = map[string]zqfx.QueueConfig{"orders": {OnFailure: "skip-key"}} }))
	mentions(t, got, `Queue("orders") with its configuration`, "config_test.go:", "SkipKey")
}

func TestConfigPrintsWhatIsSet(t *testing.T) {
	t.Parallel()
	off := false
	c := zqfx.Config{RedisURL: "redis://:secret@host", Consume: &off, Queues: map[string]zqfx.QueueConfig{
		"orders": {Concurrency: 3, Lease: time.Minute, Consume: &off}, "mail": {Ordered: true},
	}}
	want := "[redis_url=redis://***@host consume=false shutdown_timeout=12s shutdown_reserve=0s on_fatal= " +
		"queues=[mail=[ordered=true] orders=[concurrency=3 lease=1m0s consume=false]]]"
	if got := fmt.Sprint(c); got != want {
		t.Errorf("printed as\n%s, want\n%s", got, want)
	}
}
