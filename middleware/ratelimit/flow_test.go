package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zqueue/zqueue/middleware/ratelimit"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

func ids(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%02d", prefix, i)
	}
	return all
}

// Two consumers with limiters of their own share one rate; each message runs once, uncharged, and asks few times.
func TestTwoConsumersShareOneRate(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	const rate, burst, messages = 50, 5, 60
	began := time.Now()
	for range 2 {
		x.start(shared(t, x.rdb, x.queue, rate, burst), nil)
	}
	x.send("", ids("m", messages)...)
	x.settled(0)
	if got := slices.Sorted(slices.Values(x.ran())); !slices.Equal(got, ids("m", messages)) {
		t.Errorf("ran %v", got)
	}
	x.firstAttempts()
	x.paced(began, rate, burst)
	// A message that is told to wait asks a second time; the rest is for one that was early by less than a millisecond.
	if n := x.questions(); n > 3*messages {
		t.Errorf("%d questions for %d messages", n, messages)
	}
}

// Messages of one key keep their order while they are put off, and others of the queue run between them.
func TestOrderOfKeysIsKept(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]ratelimit.Option{"one rate": nil, "per key": {ratelimit.PerKey()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTrial(t)
			const rate, burst, messages = 100, 3, 12
			keys := []string{"a", "b", "c", "d"}
			for range 2 {
				x.start(shared(t, x.rdb, x.queue, rate, burst), nil, opts...)
			}
			for _, key := range keys {
				x.send(key, ids(key, messages)...)
			}
			x.settled(0)
			byKey := map[string][]string{}
			for _, id := range x.ran() {
				key, _, _ := strings.Cut(id, "-")
				byKey[key] = append(byKey[key], id)
			}
			for _, key := range keys {
				if got := byKey[key]; !slices.Equal(got, ids(key, messages)) {
					t.Errorf("%s ran %v", key, got)
				}
			}
			x.firstAttempts()
		})
	}
}

// Each key has a rate of its own: one that is over it holds no other up, and waits without being asked for again.
func TestKeysHaveRatesOfTheirOwn(t *testing.T) {
	t.Parallel()
	for name, limiter := range map[string]func(x *trial) ratelimit.Limiter{
		"shared": func(x *trial) ratelimit.Limiter { return shared(x.t, x.rdb, x.queue, perHour, 1) },
		"local": func(x *trial) ratelimit.Limiter {
			l, err := ratelimit.Local(perHour, 1)
			x.must(err)
			return l
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTrial(t)
			x.start(limiter(x), nil, ratelimit.PerKey())
			x.send("a", ids("a", 3)...)
			x.send("b", ids("b", 2)...)
			x.send("", "plain-00")
			x.settled(3)
			x.send("", "plain-01") // these have no order
			x.settled(4)
			for _, key := range ids("more", 20) { // the consumer is busy meanwhile
				x.send(key, key)
			}
			x.settled(4)
			ran := slices.Sorted(slices.Values(x.ran()))
			if want := slices.Sorted(slices.Values(append(ids("more", 20), "a-00", "b-00", "plain-00"))); !slices.Equal(ran, want) {
				t.Errorf("ran %v", ran)
			}
			// One question for each that ran, and one for each that waits at the head of its key or without one.
			if n := x.questions(); n != 23+3 {
				t.Errorf("%d questions, want 26", n)
			}
			for _, id := range []string{"a-01", "b-01", "plain-01"} {
				info, err := x.look.Message(t.Context(), id)
				x.must(err)
				if info.Attempts != 0 || info.Losses != 0 || info.LastError != "" {
					t.Errorf("%s waits with %+v", id, info)
				}
			}
		})
	}
}

// A process of its own clock: the local limiter holds its rate, by queue, and lets the burst through at once.
func TestLocalRateOfAQueue(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	const rate, burst, messages = 100, 10, 50
	l, err := ratelimit.Local(rate, burst)
	x.must(err)
	began := time.Now()
	x.start(l, nil)
	x.send("", ids("m", messages)...)
	x.settled(0)
	x.firstAttempts()
	x.paced(began, rate, burst)
	if got := slices.Sorted(slices.Values(x.ran())); !slices.Equal(got, ids("m", messages)) {
		t.Errorf("ran %v", got)
	}
}

// A retry is a start of its own: it pays, and its attempt is charged for the failure alone.
func TestRetryPaysAgain(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	const rate, failures = 20, 4
	began := time.Now()
	x.start(shared(t, x.rdb, x.queue, rate, 1), func(_ context.Context, d *zq.Delivery) error {
		if d.Attempt <= failures {
			return errors.New("not yet")
		}
		return nil
	})
	x.send("", "m")
	x.settled(0)
	x.paced(began, rate, 1)
	if want := []int{1, 2, 3, 4, 5}; !slices.Equal(x.attempts, want) {
		t.Errorf("attempts %v, want %v", x.attempts, want)
	}
}

// What waits for its slot stays in the queue when its consumer stops, and the next one finds the slot.
func TestSlotOutlivesItsConsumer(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	l := shared(t, x.rdb, x.queue, 1, 1)
	ran := make(chan string, 10)
	h := func(_ context.Context, d *zq.Delivery) error {
		ran <- d.ID
		return nil
	}
	began := time.Now()
	first := x.start(l, h)
	x.send("", "a", "b")
	zqtest.Wait(t, ran, limit)
	x.settled(1)
	x.stop(first)
	x.start(shared(t, x.rdb, x.queue, 1, 1), h)
	zqtest.Wait(t, ran, limit)
	x.settled(0)
	x.firstAttempts()
	x.paced(began, 1, 1)
}
