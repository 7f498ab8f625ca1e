package ratelimit_test

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/zqueue/zqueue/middleware/ratelimit"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// asking is a message that is about to ask.
type asking struct {
	at    time.Duration
	order int // of those at one time
	id    int
}

type agenda []asking

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].order < a[j].order
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(asking)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// clock is time that stands still until it is told to move.
type clock struct{ now time.Time }

func newClock() *clock                 { return &clock{now: time.Unix(1_700_000_000, 0)} }
func (c *clock) read() time.Time       { return c.now }
func (c *clock) move(by time.Duration) { c.now = c.now.Add(by) }

// course is what came of some messages: when each ran, and how often it asked for that.
type course struct {
	starts []time.Duration
	asks   []int
}

// play lets each message arrive, ask, and come back just when it was told to, until all have run. move moves the
// limiter's clock.
func play(t rapid.TB, l ratelimit.Limiter, move func(time.Duration), arrivals []time.Duration) course {
	t.Helper()
	c := course{starts: make([]time.Duration, len(arrivals)), asks: make([]int, len(arrivals))}
	var todo agenda
	for i, at := range arrivals {
		todo = append(todo, asking{at: at, order: i, id: i})
	}
	heap.Init(&todo)
	now := time.Duration(0)
	for order := len(arrivals); len(todo) > 0; order++ {
		next := heap.Pop(&todo).(asking)
		move(next.at - now)
		now = next.at
		wait, err := l.Reserve(context.Background(), "name", fmt.Sprint(next.id))
		if err != nil {
			t.Fatal(err)
		}
		if c.asks[next.id]++; c.asks[next.id] > 1000 {
			t.Fatalf("message %d has asked a thousand times", next.id)
		}
		if wait == 0 {
			c.starts[next.id] = now
			continue
		}
		heap.Push(&todo, asking{at: now + wait, order: order, id: next.id})
	}
	return c
}

// pace is a limit with what a check of it needs.
type pace struct {
	interval    time.Duration
	burst, line int
	maxWait     time.Duration
}

func (p pace) limit() float64 { return float64(time.Second) / float64(p.interval) }

func (p pace) local(t rapid.TB, now func() time.Time) *ratelimit.LocalLimiter {
	t.Helper()
	l, err := ratelimit.Local(p.limit(), p.burst, ratelimit.Line(p.line), ratelimit.MaxWait(p.maxWait), ratelimit.Clock(now))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// kept expects that in no stretch of time more ran than the limit allows. A local slot is right to a microsecond.
func (p pace) kept(t rapid.TB, c course) {
	t.Helper()
	s := slices.Sorted(slices.Values(c.starts))
	for i := range s {
		for j := i + p.burst; j < len(s); j++ {
			if least := time.Duration(j-i+1-p.burst) * p.interval; s[j]-s[i] < least-2*time.Microsecond {
				t.Fatalf("%d started within %s, which must take %s", j-i+1, s[j]-s[i], least)
			}
		}
	}
}

// drawn is a limit and the arrivals of messages, the same for both kinds of limiter.
func drawn(t *rapid.T, most int) (pace, []time.Duration) {
	p := pace{
		interval: time.Duration(rapid.IntRange(1, 5000).Draw(t, "interval/ms")) * time.Millisecond,
		burst:    rapid.SampledFrom([]int{1, 2, 5, 20}).Draw(t, "burst"),
		line:     rapid.SampledFrom([]int{1, 2, 10, 1000}).Draw(t, "line"),
		maxWait:  time.Duration(rapid.IntRange(1, 600).Draw(t, "maxWait/s")) * time.Second,
	}
	span := int(p.interval/time.Microsecond) * most
	arrivals := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, span), func(us int) time.Duration {
		return time.Duration(us) * time.Microsecond
	}), most/2, most).Draw(t, "arrivals")
	if rapid.Bool().Draw(t, "at once") {
		clear(arrivals)
	}
	return p, arrivals
}

// Whatever the limit and whenever messages come: no stretch of time has more than burst + limit*t starts, and each
// message runs without asking again and again.
func TestRateIsNeverExceeded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, arrivals := drawn(t, 100)
		now := newClock()
		c := play(t, p.local(t, now.read), now.move, arrivals)
		p.kept(t, c)
	})
}

// The script decides as the local limiter does, by the clock of its server: it alone moves.
func TestSharedDecidesAsLocal(t *testing.T) {
	t.Parallel()
	server := zqtest.Embedded(t)
	server.Advance(0)
	rdb := server.Client()
	rapid.Check(t, func(t *rapid.T) {
		p, arrivals := drawn(t, 20)
		p.maxWait = time.Hour // beyond that each goes its own way, and to the microsecond they do not keep in step
		if err := rdb.FlushDB(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
		l, err := ratelimit.Shared(rdb, "scope", p.limit(), p.burst, ratelimit.Line(p.line), ratelimit.MaxWait(p.maxWait))
		if err != nil {
			t.Fatal(err)
		}
		shared := play(t, l, server.Advance, arrivals)
		p.kept(t, shared)
		now := newClock()
		local := play(t, p.local(t, now.read), now.move, arrivals)
		for i := range arrivals {
			if d := (shared.starts[i] - local.starts[i]).Abs(); d > 5*time.Microsecond || shared.asks[i] != local.asks[i] {
				t.Errorf("message %d: shared at %s, after %d questions; local at %s, after %d", i,
					shared.starts[i], shared.asks[i], local.starts[i], local.asks[i])
			}
		}
	})
}

// What fits into the line runs in the order in which it asked, with no gap, and each is put off once.
func TestSlotsGoOutInOrder(t *testing.T) {
	t.Parallel()
	p := pace{interval: 100 * time.Millisecond, burst: 5, line: 200, maxWait: time.Minute}
	now := newClock()
	c := play(t, p.local(t, now.read), now.move, make([]time.Duration, 205))
	for i, at := range c.starts {
		want, asks := max(0, time.Duration(i-4)*p.interval), 1
		if want > 0 {
			asks = 2
		}
		if at != want || c.asks[i] != asks {
			t.Errorf("message %d ran at %s after %d questions, want %s after %d", i, at, c.asks[i], want, asks)
		}
	}
}

// Far more messages than the line has slots: all run at the full rate, and ask few times each, unless MaxWait makes them
// ask again sooner.
func TestBehindALongLine(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]pace{
		"line":     {interval: 10 * time.Millisecond, burst: 1, line: 100, maxWait: time.Hour},
		"max wait": {interval: 10 * time.Millisecond, burst: 1, line: 10_000, maxWait: time.Second},
	} {
		const messages = 5000
		now := newClock()
		c := play(t, p.local(t, now.read), now.move, make([]time.Duration, messages))
		p.kept(t, c)
		asked, fair := 0, 0
		for i, n := range c.asks {
			asked, fair = asked+n, fair+4+int(c.starts[i]/(p.maxWait/2))
		}
		last := slices.Max(c.starts)
		if asked > fair || last > messages*p.interval*11/10 {
			t.Errorf("%s: %d questions, %d at most; the last ran at %s", name, asked, fair, last)
		}
	}
}
