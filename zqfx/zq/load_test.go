package zq_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/zqueue/zqueue/zqfx/zq"
)

func TestWant(t *testing.T) {
	t.Parallel()
	const us = time.Microsecond
	cases := []struct {
		name string
		cfg  zq.ConsumerConfig
		in   zq.InHand
		want zq.Wanted
	}{
		{"at the start, as many as slots", zq.ConsumerConfig{}, zq.InHand{}, zq.Wanted{Entries: 10, Messages: 10, PerKey: 1}},
		{"one slot", zq.ConsumerConfig{Concurrency: 1}, zq.InHand{}, zq.Wanted{Entries: 1, Messages: 1, PerKey: 1}},
		{"some busy", zq.ConsumerConfig{}, zq.InHand{Busy: 7}, zq.Wanted{Entries: 3, Messages: 3, PerKey: 1}},
		{"some waiting", zq.ConsumerConfig{}, zq.InHand{Busy: 7, Units: 2}, zq.Wanted{Entries: 1, Messages: 1, PerKey: 1}},
		{"all taken", zq.ConsumerConfig{}, zq.InHand{Busy: 7, Units: 3}, zq.Wanted{}},
		{"all busy, speed unknown", zq.ConsumerConfig{}, zq.InHand{Busy: 10}, zq.Wanted{}},
		{"all busy and fast: 100 ms ahead", zq.ConsumerConfig{}, zq.InHand{Busy: 10, RunMean: 10 * time.Millisecond}, zq.Wanted{Entries: 100, Messages: 100, PerKey: 10}},
		{"half of it there: the other half", zq.ConsumerConfig{}, zq.InHand{Busy: 10, Messages: 50, Units: 50, RunMean: 10 * time.Millisecond}, zq.Wanted{Entries: 50, Messages: 50, PerKey: 10}},
		{"more than half there", zq.ConsumerConfig{}, zq.InHand{Busy: 10, Messages: 51, Units: 51, RunMean: 10 * time.Millisecond}, zq.Wanted{PerKey: 10}},
		{"all busy and slow", zq.ConsumerConfig{}, zq.InHand{Busy: 10, RunMean: time.Second}, zq.Wanted{}},
		{"slow with free slots: those, no more", zq.ConsumerConfig{}, zq.InHand{Busy: 8, RunMean: time.Second}, zq.Wanted{Entries: 2, Messages: 2, PerKey: 1}},
		{"no claiming ahead", zq.ConsumerConfig{ClaimAhead: zq.Unlimited}, zq.InHand{Busy: 10, RunMean: us}, zq.Wanted{}},
		{"no claiming ahead, free slots", zq.ConsumerConfig{ClaimAhead: zq.Unlimited}, zq.InHand{Busy: 6, RunMean: us}, zq.Wanted{Entries: 4, Messages: 4, PerKey: 256}},
		{"ahead at its bound", zq.ConsumerConfig{ClaimAhead: 7, Concurrency: 2}, zq.InHand{Busy: 2, RunMean: us}, zq.Wanted{Entries: 7, Messages: 7, PerKey: 256}},
		{"prefetch at its bound", zq.ConsumerConfig{KeyPrefetch: 3}, zq.InHand{RunMean: us}, zq.Wanted{Entries: 1000, Messages: 1000, PerKey: 3}},
		{"a step at its bound", zq.ConsumerConfig{Concurrency: 5000}, zq.InHand{RunMean: us}, zq.Wanted{Entries: 1000, Messages: 1000, PerKey: 256}},
		{"large bodies", zq.ConsumerConfig{}, zq.InHand{RunMean: us, BodyMean: 1 << 20}, zq.Wanted{Entries: 8, Messages: 8, PerKey: 256}},
		{"huge bodies", zq.ConsumerConfig{}, zq.InHand{RunMean: us, BodyMean: 64 << 20}, zq.Wanted{Entries: 1, Messages: 1, PerKey: 256}},
	}
	for _, c := range cases {
		got := zq.Want(c.cfg, c.in)
		if got.Entries == 0 && c.want.Entries == 0 {
			continue // what else it says does not count
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// Whatever is in hand: never more than a step, than slots and what may wait, nor a call for nothing.
func TestWantBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cfg := zq.ConsumerConfig{
			Concurrency: rapid.IntRange(1, 10_000).Draw(t, "concurrency"),
			ClaimAhead:  rapid.SampledFrom([]int{zq.Unlimited, 1, 10, 1000, 10_000}).Draw(t, "ahead"),
			KeyPrefetch: rapid.IntRange(1, 1000).Draw(t, "prefetch"),
		}
		in := zq.InHand{
			Busy: rapid.IntRange(0, cfg.Concurrency).Draw(t, "busy"), Units: rapid.IntRange(0, 12_000).Draw(t, "units"),
			BodyMean: rapid.IntRange(0, 64<<20).Draw(t, "body"),
			RunMean:  time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "mean")),
		}
		in.Messages = in.Units + rapid.IntRange(0, 1000).Draw(t, "behind")
		got := zq.Want(cfg, in)
		free := max(0, cfg.Concurrency-in.Busy-in.Units)
		switch most := max(free, cfg.ClaimAhead); {
		case got.Entries < 0 || got.Entries > 1000 || got.Messages < got.Entries || got.Messages > 1000:
			t.Errorf("out of a step's bounds: %+v", got)
		case got.Entries > most:
			t.Errorf("%+v, but %d slots are free and %d may wait", got, free, cfg.ClaimAhead)
		case free > 0 && got.Entries == 0:
			t.Errorf("%d slots are free and nothing is claimed", free)
		case got.Entries > 0 && (got.PerKey < 1 || got.PerKey > cfg.KeyPrefetch):
			t.Errorf("%d of a key, want 1 to %d", got.PerKey, cfg.KeyPrefetch)
		case in.BodyMean > 0 && got.Messages > 1 && got.Messages*in.BodyMean > 8<<20:
			t.Errorf("%d messages of %d bytes are more than a step", got.Messages, in.BodyMean)
		}
	})
}

func TestBlend(t *testing.T) {
	t.Parallel()
	if got := zq.Blend(0, 800); got != 800 {
		t.Errorf("the first value: %d", got)
	}
	if got := zq.Blend(800, 1600); got != 900 {
		t.Errorf("an eighth of the way: %d", got)
	}
	mean := int64(time.Second)
	for range 200 {
		if mean = zq.Blend(mean, 1); mean < 1 {
			t.Fatalf("a mean of %d counts as unknown", mean)
		}
	}
	if mean > 10 {
		t.Errorf("after 200 runs of nothing the mean is %d", mean)
	}
}

// A message without a key is a unit, those of a key are one, all in the order in which they came.
func TestUnits(t *testing.T) {
	t.Parallel()
	m := func(seq, id, key string) string {
		if key != "" {
			key = "\x00" + key
		}
		return "\x01" + "000000000000" + seq + ":" + id + key
	}
	members := []string{
		m("01", "a", "k"), m("02", "b", ""), "plain", m("03", "c", "j"), m("04", "d", "k"), m("05", "e", ""), "plain too",
		m("06", "f", "k"), m("07", "g", "j"),
	}
	keys, groups := zq.Units(members...)
	if want := []string{"k", "", "", "j", "", ""}; !slices.Equal(keys, want) {
		t.Errorf("keys %q, want %q", keys, want)
	}
	want := [][]string{{members[0], members[4], members[7]}, {members[1]}, {members[2]}, {members[3], members[8]}, {members[5]}, {members[6]}}
	if diff := cmp.Diff(want, groups); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if keys, _ := zq.Units(); keys != nil {
		t.Errorf("units of nothing: %q", keys)
	}
}
