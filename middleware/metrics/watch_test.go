package metrics_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zqueue/zqueue/middleware/metrics"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// source is a function as a DepthSource.
type source func(ctx context.Context) (zq.Depth, error)

func (f source) Depth(ctx context.Context) (zq.Depth, error) { return f(ctx) }

const (
	pending = "messaging.zq.queue.depth{messaging.destination.name=orders,messaging.zq.state=pending}"
	unread  = "messaging.zq.queue.read.failed{messaging.destination.name=orders}"
)

func (k *kit) watch(src metrics.DepthSource, opts ...metrics.WatchOption) (stop func() error) {
	k.t.Helper()
	stop, err := k.Watch("orders", src, opts...)
	if err != nil {
		k.t.Fatal(err)
	}
	return stop
}

func TestWatch(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	stop := k.watch(source(func(context.Context) (zq.Depth, error) {
		return zq.Depth{
			Pending: 1, Delayed: 2, Running: 3, Suspect: 4, Dead: 5, KeysHeld: 6, KeysWaiting: 7, KeysSuspect: 8, KeysHalted: 9,
			OldestReady: 1500 * time.Millisecond, Paused: true,
		}, nil
	}))
	const depth, keys, queue = "messaging.zq.queue.depth{", "messaging.zq.queue.keys{", "messaging.destination.name=orders"
	k.want("watched", map[string]float64{
		depth + queue + ",messaging.zq.state=pending}": 1, depth + queue + ",messaging.zq.state=delayed}": 2,
		depth + queue + ",messaging.zq.state=running}": 3, depth + queue + ",messaging.zq.state=suspect}": 4,
		depth + queue + ",messaging.zq.state=dead}": 5, keys + queue + ",messaging.zq.state=held}": 6,
		keys + queue + ",messaging.zq.state=waiting}": 7, keys + queue + ",messaging.zq.state=suspect}": 8,
		keys + queue + ",messaging.zq.state=halted}": 9, "messaging.zq.queue.oldest_ready.age{" + queue + "}": 1.5,
		"messaging.zq.queue.paused{" + queue + "}": 1,
	})
	if _, err := k.Watch("orders", source(nil)); !errors.Is(err, zq.ErrInvalid) {
		t.Errorf("watched twice: %v", err)
	}
	if err := errors.Join(stop(), stop()); err != nil {
		t.Error(err)
	}
	k.want("stopped", map[string]float64{})
	again := k.watch(source(func(context.Context) (zq.Depth, error) { return zq.Depth{}, nil }))
	if err := again(); err != nil {
		t.Error(err)
	}
}

func TestWatchFaults(t *testing.T) {
	t.Parallel()
	_, err := newKit(t).Watch("", nil, metrics.Every(time.Millisecond), metrics.Within(time.Hour), nil)
	joined, ok := err.(interface{ Unwrap() []error })
	if !errors.Is(err, zq.ErrInvalid) || !ok {
		t.Fatalf("got %v", err)
	}
	want := "zq: metrics.Every is 1ms, want 100ms to 1h0m0s\nzq: metrics.Within is 1h0m0s, want 1ms to 1m0s\n" +
		"zq: metrics.Watch queue is empty, want the name of a queue\nzq: metrics.Watch source is nil, want a DepthSource"
	if diff := cmp.Diff(want, errors.Join(joined.Unwrap()...).Error()); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

// One reading serves all scrapes of a while; a failing source is asked as seldom, and its last word is not kept for
// ever.
func TestWatchReadsSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		var reads int64
		var fail error
		stop := k.watch(source(func(context.Context) (zq.Depth, error) {
			reads++
			return zq.Depth{Pending: reads}, fail
		}))
		at := func(what string, pass time.Duration, value float64, there bool, failed float64) {
			t.Helper()
			<-time.After(pass) // of the bubble's clock
			points := k.points()
			if got, ok := points[pending]; got != value || ok != there || points[unread] != failed {
				t.Errorf("%s: pending %v (%t), failed %v, after %d reads", what, got, ok, points[unread], reads)
			}
		}
		at("first", 0, 1, true, 0)
		at("cached", 4999*time.Millisecond, 1, true, 0)
		at("read again", time.Millisecond, 2, true, 0)
		fail = errors.New("no")
		at("fails", 5*time.Second, 2, true, 1)
		at("not asked again", time.Second, 2, true, 1)
		at("last moment", 8999*time.Millisecond, 2, true, 2)
		at("stale", time.Millisecond, 0, false, 2)
		fail = nil
		at("well", 5*time.Second, 5, true, 2)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A source that hears nothing delays one scrape within the bound and the next ones not at all; it is asked once,
// whoever collects, and its late answer serves.
func TestWatchDeafSource(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		answer := make(chan struct{})
		var reads atomic.Int64
		stop := k.watch(source(func(context.Context) (zq.Depth, error) {
			reads.Add(1)
			<-answer
			return zq.Depth{Pending: 7}, nil
		}), metrics.Within(time.Second))
		began := time.Now()
		for range 5 { // one after the other: the SDK holds a lock while it collects
			if _, there := k.points()[pending]; there {
				t.Error("a value out of nothing")
			}
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("the scrapes took %s", took)
		}
		<-time.After(time.Minute)
		began = time.Now()
		if got := k.points(); got[unread] != 1 || reads.Load() != 1 || time.Since(began) != 0 {
			t.Errorf("failed %v, %d reads, took %s", got[unread], reads.Load(), time.Since(began))
		}
		close(answer)
		synctest.Wait()
		if got := k.points()[pending]; got != 7 {
			t.Errorf("the late answer is not used: %v", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Stopping waits for a reading, but not for ever.
func TestWatchStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		polite := k.watch(source(func(ctx context.Context) (zq.Depth, error) {
			<-ctx.Done()
			return zq.Depth{}, ctx.Err()
		}), metrics.Within(time.Minute))
		k.collect()
		synctest.Wait()
		began := time.Now()
		if err := polite(); err != nil || time.Since(began) > 0 {
			t.Errorf("stop took %s: %v", time.Since(began), err)
		}
		answer := make(chan struct{})
		deaf := k.watch(source(func(context.Context) (zq.Depth, error) { <-answer; return zq.Depth{}, nil }))
		k.collect()
		if err := deaf(); err == nil {
			t.Error("stop says nothing of a reading that goes on")
		}
		close(answer)
	})
}

// What panics or ends its goroutine in a source is a failed reading.
func TestWatchBrokenSources(t *testing.T) {
	t.Parallel()
	for name, src := range map[string]source{
		"panic":     func(context.Context) (zq.Depth, error) { panic("boom") },
		"panic nil": func(context.Context) (zq.Depth, error) { panic(nil) }, //nolint:govet // sources may
		"goexit":    func(context.Context) (zq.Depth, error) { runtime.Goexit(); return zq.Depth{}, nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			k := newKit(t)
			stop := k.watch(src)
			k.collect()
			<-time.After(5 * time.Second)
			if got := k.points(); got[unread] != 2 {
				t.Errorf("%s: failed %v, want it tried again", name, got[unread])
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}
