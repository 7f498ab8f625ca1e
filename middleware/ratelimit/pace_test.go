package ratelimit_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/zqueue/zqueue/middleware/ratelimit"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// maker makes limiters of a kind, whose clock stands still until move moves it.
type maker struct {
	limiter func(limit float64, burst int, opts ...ratelimit.LimiterOption) ratelimit.Limiter
	move    func(time.Duration)
}

// eachKind runs a check with limiters of both kinds; those over Redis go by that server's clock.
func eachKind(t *testing.T, check func(*testing.T, maker)) {
	t.Helper()
	t.Run("local", func(t *testing.T) {
		t.Parallel()
		now := newClock()
		check(t, maker{func(limit float64, burst int, opts ...ratelimit.LimiterOption) ratelimit.Limiter {
			all := []ratelimit.LocalOption{ratelimit.Clock(now.read)}
			for _, o := range opts {
				all = append(all, o)
			}
			l, err := ratelimit.Local(limit, burst, all...)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}, now.move})
	})
	t.Run("shared", func(t *testing.T) {
		t.Parallel()
		server := zqtest.Embedded(t)
		server.Advance(0)
		rdb := server.Client()
		scopes := 0
		check(t, maker{func(limit float64, burst int, opts ...ratelimit.LimiterOption) ratelimit.Limiter {
			var all []ratelimit.SharedOption
			for _, o := range opts {
				all = append(all, o)
			}
			scopes++
			return shared(t, rdb, strconv.Itoa(scopes), limit, burst, all...)
		}, server.Advance})
	})
}

func TestBurstThenTheRate(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, m maker) {
		l := m.limiter(1, 3)
		for i := range 3 {
			told(t, l, "n", strconv.Itoa(i), 0)
		}
		told(t, l, "n", "a", time.Second)
		told(t, l, "n", "b", 2*time.Second)
		m.move(400 * time.Millisecond)
		told(t, l, "n", "b", 1600*time.Millisecond) // early: it keeps its slot and pays nothing
		told(t, l, "n", "b", 1600*time.Millisecond)
		m.move(600 * time.Millisecond)
		told(t, l, "n", "a", 0)
		told(t, l, "n", "a", 2*time.Second) // its next run pays anew
		m.move(time.Second)
		told(t, l, "n", "b", 0)
		m.move(time.Hour) // a pause gives the burst back, and no more
		for i := range 3 {
			told(t, l, "n", "after"+strconv.Itoa(i), 0)
		}
		told(t, l, "n", "after3", time.Second)
	})
}

// A slot waits for its message, for a second or as long as the burst takes to fill up; after that it is lost.
func TestSlotIsKeptForALateMessage(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, m maker) {
		for _, burst := range []int{1, 5} {
			l := m.limiter(1, burst)
			kept := time.Duration(burst) * time.Second
			for i := range burst {
				told(t, l, "n", fmt.Sprint("burst", i), 0)
			}
			for i := 1; i <= 20; i++ {
				told(t, l, "n", strconv.Itoa(i), time.Duration(i)*time.Second)
			}
			m.move(time.Second + kept)
			told(t, l, "n", "1", 0) // at the last moment
			m.move(time.Second + time.Microsecond)
			told(t, l, "n", "2", 21*time.Second-(2*time.Second+kept+time.Microsecond)) // too late: it pays as any other
		}
	})
}

// No wait is longer than MaxWait, but for that of the next slot, which can always be had.
func TestMaxWaitBoundsWaits(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, m maker) {
		l := m.limiter(1, 1, ratelimit.MaxWait(10*time.Second))
		for i := range 100 {
			wait, err := l.Reserve(t.Context(), "n", strconv.Itoa(i))
			if err != nil || wait > 10*time.Second || i <= 10 && wait != time.Duration(i)*time.Second {
				t.Errorf("message %d: told %s, %v", i, wait, err)
			}
		}
		slow := m.limiter(perHour, 1, ratelimit.MaxWait(time.Second))
		told(t, slow, "n", "a", 0)
		told(t, slow, "n", "b", time.Hour)
		m.move(time.Hour)
		told(t, slow, "n", "b", 0)
	})
}
