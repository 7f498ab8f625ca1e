package zqfx

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// What a drain gets of fx's time, and what the hooks of others get.
func TestF10BudgetTable(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	cases := []struct {
		name                string
		own, asked          time.Duration // Config
		left                time.Duration // fx's deadline; 0 for none
		want, words, others time.Duration
	}{
		{"F9 no deadline", 0, 0, 0, 12 * time.Second, 2 * time.Second, 0},
		{"F9 no deadline, own time", 400 * ms, 0, 0, 400 * ms, 100 * ms, 0},
		{"all defaults", 0, 0, 15 * time.Second, 12 * time.Second, 2 * time.Second, 3 * time.Second},
		{"own time is less", 5 * time.Second, 0, 15 * time.Second, 5 * time.Second, 1250 * ms, 10 * time.Second},
		{"own time is more", time.Minute, 0, 15 * time.Second, 12 * time.Second, 2 * time.Second, 3 * time.Second},
		{"others used some", 0, 0, 10 * time.Second, 8 * time.Second, 2 * time.Second, 2 * time.Second},
		{"a second at least", 0, 0, 4 * time.Second, 3 * time.Second, 750 * ms, time.Second},
		{"half at most", 0, 0, time.Second, 500 * ms, 125 * ms, 500 * ms},
		{"own reserve", 0, 7 * time.Second, 15 * time.Second, 8 * time.Second, 2 * time.Second, 7 * time.Second},
		{"own reserve, half at most", 0, time.Hour, 15 * time.Second, 7500 * ms, 1875 * ms, 7500 * ms},
		{"a small reserve is kept", 0, ms, 10 * time.Second, 9999 * ms, 2 * time.Second, ms},
		{"over", 0, 0, -time.Second, 0, 0, 0},
		{"over, own reserve", 0, time.Second, -time.Second, 0, 0, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // the clock stands
				ctx, cancel := t.Context(), func() {}
				if c.left != 0 {
					ctx, cancel = context.WithTimeout(ctx, c.left)
				}
				defer cancel()
				got := budget(ctx, Config{ShutdownTimeout: c.own, ShutdownReserve: c.asked})
				if got != c.want {
					t.Errorf("the drain has %s, want %s", got, c.want)
				}
				if words := lastWords(got); words != c.words {
					t.Errorf("%s are for last words, want %s", words, c.words)
				}
				if c.left > 0 && c.left-got != c.others {
					t.Errorf("others have %s, want %s", c.left-got, c.others)
				}
			})
		})
	}
}

// Whatever is configured, a drain takes no more than its own time, and others have their part of fx's.
func TestF10BudgetNeverTakesAll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		own := rapid.Int64Range(int64(MinShutdownTimeout), int64(MaxShutdownTimeout)).Draw(rt, "own")
		asked := rapid.Int64Range(0, int64(MaxShutdownTimeout)).Draw(rt, "asked")
		left := rapid.Int64Range(1, int64(MaxShutdownTimeout)).Draw(rt, "left")
		c := Config{ShutdownTimeout: time.Duration(own), ShutdownReserve: time.Duration(asked)}
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(left))
		defer cancel()
		got := budget(ctx, c)
		if got < 0 || got > c.ShutdownTimeout {
			rt.Fatalf("the drain has %s of its %s", got, c.ShutdownTimeout)
		}
		part := time.Duration(left / 5)
		if asked > 0 {
			part = min(c.ShutdownReserve, time.Duration(left/2))
		}
		if others := time.Duration(left) - got; others < part {
			rt.Fatalf("others have %s of %s, want %s", others, time.Duration(left), part)
		}
	})
}

// A queue's grace and drain time fit into the shutdown unless somebody said otherwise.
func TestShutdownFitsQueues(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	cases := []struct {
		name                 string
		shutdown             time.Duration
		grace, drain         time.Duration // as configured
		wantGrace, wantDrain time.Duration
		cut                  bool
	}{
		{"defaults", 0, 0, 0, 3 * time.Second, 7 * time.Second, false},
		{"short", 400 * ms, 0, 0, 100 * ms, 200 * ms, false},
		{"shortest", MinShutdownTimeout, 0, 0, 25 * ms, 50 * ms, false},
		{"long", time.Hour, 0, 0, 5 * time.Second, time.Hour - 7*time.Second, false},
		{"own grace", 0, time.Second, 0, time.Second, 9 * time.Second, false},
		{"own drain time", 0, 0, time.Second, 3 * time.Second, time.Second, false},
		{"own drain time is too long", 0, 0, 8 * time.Second, 3 * time.Second, 8 * time.Second, true},
		{"own grace is too long", 0, time.Minute, 0, time.Minute, ms, true},
		{"both are too long", 0, time.Minute, time.Minute, time.Minute, time.Minute, true},
	}
	for _, c := range cases {
		q := &queuePlan{}
		q.settings.Grace, q.settings.DrainTime = c.grace, c.drain
		config := Config{ShutdownTimeout: c.shutdown}
		q.fitShutdown(config)
		if q.settings.Grace != c.wantGrace || q.settings.DrainTime != c.wantDrain || q.cutShort(config) != c.cut {
			t.Errorf("%s: grace %s, drain time %s, cut short %t; want %s, %s, %t", c.name, q.settings.Grace, q.settings.DrainTime,
				q.cutShort(config), c.wantGrace, c.wantDrain, c.cut)
		}
	}
}
