package redo_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/zqueue/zqueue/zqfx/zq/internal/redo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Each pause lies between half of the full one and all of it; the full one doubles up to its cap.
func TestPaceGrowsToItsCap(t *testing.T) {
	t.Parallel()
	const base, most = 10 * time.Millisecond, 100 * time.Millisecond
	for range 200 {
		p := redo.New(base, most)
		for i, full := range []time.Duration{base, 2 * base, 4 * base, 8 * base, most, most, most, most} {
			if got := p.Next(); got < full/2 || got > full {
				t.Fatalf("pause %d is %v, want in [%v, %v]", i, got, full/2, full)
			}
		}
		p.Reset()
		if got := p.Next(); got > base {
			t.Fatalf("after a success: %v", got)
		}
	}
}

// Two processes that failed together do not come back together.
func TestPaceSpreads(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]bool{}
	for range 100 {
		seen[redo.New(time.Second, time.Second).Next()] = true
	}
	if len(seen) < 90 {
		t.Errorf("%d different pauses of 100", len(seen))
	}
}

func TestPaceOfNothing(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{0, 1, 2} {
		if got := redo.New(d, d).Next(); got < 0 || got > d {
			t.Errorf("pause of %v: %v", d, got)
		}
	}
}

func TestSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := redo.Sleep(t.Context(), time.Hour); err != nil || time.Since(start) != time.Hour {
			t.Errorf("slept %v: %v", time.Since(start), err)
		}
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(gone) })
		start = time.Now()
		if err := redo.Sleep(ctx, time.Hour); !errors.Is(err, gone) || time.Since(start) != time.Minute {
			t.Errorf("ended after %v: %v", time.Since(start), err)
		}
		start = time.Now()
		if err := redo.New(time.Hour, time.Hour).Wait(ctx); !errors.Is(err, gone) || time.Since(start) != 0 {
			t.Errorf("waited %v for nothing: %v", time.Since(start), err)
		}
		start = time.Now()
		if err := redo.New(time.Hour, time.Hour).Wait(t.Context()); err != nil || time.Since(start) < time.Hour/2 || time.Since(start) > time.Hour {
			t.Errorf("waited %v: %v", time.Since(start), err)
		}
	})
}
