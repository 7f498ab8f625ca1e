package zq_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// diary is an observer that writes all down.
type diary struct {
	mu      sync.Mutex
	claimed map[string]int
	decided map[string]zq.Action
	traces  []string
	settled int
	lost    int
	failed  map[string]int
}

func (d *diary) observer() zq.Observer {
	d.claimed, d.decided, d.failed = map[string]int{}, map[string]zq.Action{}, map[string]int{}
	note := func(f func()) {
		d.mu.Lock()
		defer d.mu.Unlock()
		f()
	}
	return zq.Observer{
		Claimed: func(c zq.Claimed) {
			note(func() {
				for _, m := range c.Messages {
					if c.Queue == m.Queue && !c.Server.IsZero() && m.ClaimedAt.Equal(c.Server) && !c.Began.IsZero() && c.Took > 0 {
						d.claimed[m.ID]++
					}
				}
			})
		},
		Settled: func(s zq.Settled) {
			note(func() {
				d.traces = append(d.traces, s.Traces...)
				if s.Err == nil {
					d.settled += s.Messages
				}
			})
		},
		Decided: func(m *zq.Delivery, dec zq.Decision) { note(func() { d.decided[m.ID] = dec.Action }) },
		Lost:    func(l zq.Lost) { note(func() { d.lost += l.Messages }) },
		Failed:  func(call string, err error) { note(func() { d.failed[call]++ }) },
	}
}

func (d *diary) read(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// An observer sees each claim, decision and record; one that panics does not keep the next from it.
func TestObserverSeesALife(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.enqueue(zq.Message{ID: "ack"}, zq.Message{ID: "retry"}, zq.Message{ID: "wait"}, zq.Message{ID: "aside", Key: "k"}, zq.Message{ID: "dead"})
	var d diary
	angry := zq.Observer{
		Claimed: func(zq.Claimed) { panic("claimed") }, Settled: func(zq.Settled) { panic("settled") },
		Decided: func(*zq.Delivery, zq.Decision) { panic(errors.New("decided")) },
	}
	b.work(zq.ConsumerConfig{Observers: []zq.Observer{angry, {}, d.observer()}}, func(_ context.Context, d *zq.Delivery) error {
		d.Leave("t-" + d.ID)
		switch d.ID {
		case "retry":
			return zq.RetryAfter(time.Hour, errors.New("no"))
		case "wait":
			return zq.Postpone(time.Hour)
		case "aside":
			return zq.StepAside(time.Hour)
		case "dead":
			return zq.Dead("why", nil)
		}
		return nil
	})
	zqtest.Eventually(t, limit, func() (done bool) {
		d.read(func() { done = d.settled == 5 })
		return done
	}, "five outcomes to be recorded")
	d.read(func() {
		want := map[string]zq.Action{
			"ack": zq.ActionAck, "retry": zq.ActionRetry, "wait": zq.ActionPostpone, "aside": zq.ActionPostpone, "dead": zq.ActionDead,
		}
		if diff := cmp.Diff(want, d.decided); diff != "" {
			t.Errorf("decided (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]int{"ack": 1, "retry": 1, "wait": 1, "aside": 1, "dead": 1}, d.claimed); diff != "" {
			t.Errorf("claimed (-want +got):\n%s", diff)
		}
		if len(d.traces) != 5 {
			t.Errorf("traces %v", d.traces)
		}
	})
	b.verify()
}

// It is told of what fails, and of what a stopping consumer gives back.
func TestObserverSeesTrouble(t *testing.T) {
	t.Parallel()
	server := zqtest.Redis(t)
	proxy := zqtest.Proxy(t, server.Addr())
	b := benchOn(t, server.Client(func(o *redis.Options) { o.Addr = proxy.Addr() }))
	b.enqueue(zq.Message{ID: "m"})
	var d diary
	started := make(chan struct{}, 1)
	b.work(zq.ConsumerConfig{Lease: 300 * time.Millisecond, Observers: []zq.Observer{d.observer()}},
		func(ctx context.Context, _ *zq.Delivery) error {
			select {
			case started <- struct{}{}:
			default:
				return nil // the run after the loss
			}
			<-ctx.Done()
			return ctx.Err()
		})
	zqtest.Wait(t, started, limit)
	started <- struct{}{}
	proxy.Cut()
	zqtest.Eventually(t, limit, func() (told bool) {
		d.read(func() { told = d.lost == 1 && d.failed["heartbeat"] > 0 && d.decided["m"] == zq.ActionDrop })
		return told
	}, "the loss of the lease to be told")
	proxy.Heal()
}
