package zqfx_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/zqueue/zqueue/zqfx"
)

// A file says what the fields say, in words that people write: 20s, and the policies by name.
func TestConfigIsReadFromYAML(t *testing.T) {
	t.Parallel()
	const text = `
redis_url: redis://redis.internal:6379/0
consume: true
shutdown_timeout: 20s
shutdown_reserve: 3s
on_fatal: degrade
queues:
  orders:
    ordered: true
    concurrency: 16
    lease: 10s
    on_death: halt-key
  mail:
    consume: false
    dead_max: 500
`
	on, off := true, false
	want := zqfx.Config{
		RedisURL: "redis://redis.internal:6379/0", Consume: &on, ShutdownTimeout: 20 * time.Second, ShutdownReserve: 3 * time.Second,
		OnFatal: "degrade", Queues: map[string]zqfx.QueueConfig{
			"orders": {Ordered: true, Concurrency: 16, Lease: 10 * time.Second, OnDeath: "halt-key"},
			"mail":   {Consume: &off, DeadMax: 500},
		},
	}
	var got zqfx.Config
	if err := yaml.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
	out, err := yaml.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var again zqfx.Config
	if err := yaml.Unmarshal(out, &again); err != nil || !cmp.Equal(want, again) {
		t.Errorf("written and read again: %v\n%s", err, out)
	}
}
