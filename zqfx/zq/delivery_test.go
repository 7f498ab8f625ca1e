package zq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/effect"
)

// A delivery built by hand takes what a real one takes.
func TestDeliveryByHand(t *testing.T) {
	t.Parallel()
	d := &zq.Delivery{Queue: "q", ID: "a"}
	err := errors.Join(
		d.Then(), d.Then(zq.Message{ID: "b"}, zq.Message{}), d.Effect(), d.Effect(effect.Set("s", "1"), effect.IfAbsent("t")))
	if err != nil {
		t.Error(err)
	}
	if err := d.Checkpoint(context.Background(), effect.Set("s", "1")); !errors.Is(err, zq.ErrLeaseLost) {
		t.Errorf("a checkpoint without a claim: %v", err)
	}
	if d.Fence() != 0 {
		t.Errorf("fence %d", d.Fence())
	}
}

func TestDeliveryThenValidates(t *testing.T) {
	t.Parallel()
	d := &zq.Delivery{}
	wantFaults(t, d.Then(zq.Message{ID: "good"}, zq.Message{ID: "\n", Delay: -1}, zq.Message{Key: "\x00"}),
		"message.id", "message.delay", "message.key")
	wantFaults(t, d.Then(make([]zq.Message, zq.MaxBatch+1)...), "follow-ups")
	if err := d.Then(make([]zq.Message, zq.MaxBatch)...); err != nil {
		t.Errorf("as many as a batch: %v", err)
	}
	wantFaults(t, d.Then(zq.Message{}), "follow-ups") // the limit is for all calls together
}

func TestDeliveryEffectValidates(t *testing.T) {
	t.Parallel()
	d := &zq.Delivery{}
	wantFaults(t, d.Effect(effect.Set("s", "1"), effect.Set("", "1")), "effect[1]")
	wantFaults(t, d.Effect(effect.Effect{}), "effect[0]")
	if err := d.Effect(effect.Set("s", "1")); err != nil {
		t.Fatal(err)
	}
	// Refused with what is attached already, and nothing of it stays.
	wantFaults(t, d.Effect(effect.HSet("s", "f", "1")), "effects")
	wantFaults(t, d.Effect(effect.IncrBy("s", 1)), "effects")
	if err := d.Effect(effect.IncrBy("n", 1)); err != nil {
		t.Errorf("after a refused one: %v", err)
	}
	wantFaults(t, d.Effect(effect.IncrBy("n", 1)), "effects")
	for i := range effect.MaxList - 2 {
		if err := d.Effect(effect.Del(fmt.Sprint("k", i))); err != nil {
			t.Fatalf("effect %d: %v", i, err)
		}
	}
	wantFaults(t, d.Effect(effect.Del("one more")), "effects")
}

func TestEffectErrorText(t *testing.T) {
	t.Parallel()
	err := &zq.EffectError{Index: 2, Effect: "equals stock"}
	if got := err.Error(); !strings.Contains(got, "2") || !strings.Contains(got, "equals stock") {
		t.Errorf("%q", got)
	}
	if got := zq.EffectKey("orders", "stock:7"); got != "zq:{orders}:x:stock:7" {
		t.Errorf("key %q", got)
	}
}
