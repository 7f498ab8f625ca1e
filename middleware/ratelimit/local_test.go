package ratelimit_test

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zqueue/zqueue/middleware/ratelimit"
)

// local is a limiter of one start a second on a clock of the test's own.
func local(t *testing.T, burst int, opts ...ratelimit.LocalOption) (*ratelimit.LocalLimiter, *clock) {
	t.Helper()
	now := newClock()
	l, err := ratelimit.Local(1, burst, append(opts, ratelimit.Clock(now.read))...)
	if err != nil {
		t.Fatal(err)
	}
	return l, now
}

// told asks, and expects to be told this.
func told(t *testing.T, l ratelimit.Limiter, name, id string, want time.Duration) {
	t.Helper()
	if got, err := l.Reserve(t.Context(), name, id); err != nil || got != want {
		t.Errorf("%s, %s: told %s, %v, want %s", name, id, got, err, want)
	}
}

func TestLocalNamesHaveRatesOfTheirOwn(t *testing.T) {
	t.Parallel()
	l, _ := local(t, 1)
	told(t, l, "a", "m1", 0)
	told(t, l, "a", "m2", time.Second)
	told(t, l, "b", "m2", 0) // the same message under another name is another
	told(t, l, "b", "m3", time.Second)
	if n := l.Names(); n != 2 {
		t.Errorf("%d names, want 2", n)
	}
}

// A clock that goes back takes no message's turn away for longer than the line reaches.
func TestLocalClockGoesBack(t *testing.T) {
	t.Parallel()
	l, now := local(t, 1, ratelimit.Line(10))
	told(t, l, "n", "a", 0)
	told(t, l, "n", "b", time.Second)
	now.move(-24 * time.Hour)
	told(t, l, "n", "b", 2*time.Second)
	told(t, l, "n", "c", 3*time.Second)
	now.move(2 * time.Second)
	told(t, l, "n", "b", 0)
}

// However many names are asked for, no more than MaxNames are remembered, and those that have their burst back are
// forgotten before that.
func TestLocalMemoryDoesNotGrowWithNames(t *testing.T) {
	t.Parallel()
	l, now := local(t, 2, ratelimit.MaxNames(100))
	for i := range 10_000 {
		told(t, l, strconv.Itoa(i), "m", 0)
		if n := l.Names(); n > 100 {
			t.Fatalf("%d names after %d, want 100 at most", n, i+1)
		}
	}
	if n := l.Names(); n != 100 {
		t.Errorf("%d names, want 100", n)
	}
	now.move(time.Minute)
	for i := range 34 { // each new one pushes up to four out
		told(t, l, fmt.Sprint("new", i), "m", 0)
	}
	if n := l.Names(); n != 34 {
		t.Errorf("%d names are remembered after a minute, want the 34 new ones", n)
	}
	one, _ := local(t, 1, ratelimit.MaxNames(1))
	for range 3 {
		for _, name := range []string{"a", "b"} {
			told(t, one, name, "m", 0) // forgotten each time, and so it begins anew
		}
	}
	if n := one.Names(); n != 1 {
		t.Errorf("%d names, want 1", n)
	}
}

// The name that is in use stays when others push in.
func TestLocalForgetsTheNameNotAskedForTheLongest(t *testing.T) {
	t.Parallel()
	l, _ := local(t, 1, ratelimit.MaxNames(10))
	told(t, l, "used", "first", 0)
	for i := range 1000 {
		told(t, l, strconv.Itoa(i), "m", 0)
		told(t, l, "used", "second", time.Second)
	}
}

func TestLocalConcurrentSafe(t *testing.T) {
	t.Parallel()
	const burst, callers = 50, 20
	l, _ := local(t, burst, ratelimit.MaxNames(3))
	var now, later atomic.Int64
	var wait sync.WaitGroup
	for caller := range callers {
		wait.Go(func() {
			for i := range burst {
				got, err := l.Reserve(t.Context(), "n", fmt.Sprint(caller, "/", i))
				if err != nil || got < 0 {
					t.Errorf("told %s, %v", got, err)
				}
				if got == 0 {
					now.Add(1)
				} else {
					later.Add(1)
				}
			}
		})
	}
	wait.Wait()
	if now.Load() != burst || later.Load() != (callers-1)*burst {
		t.Errorf("%d at once and %d later, want %d and %d", now.Load(), later.Load(), burst, (callers-1)*burst)
	}
}
