package deadletter_test

import (
	"context"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zqueue/zqueue/middleware/deadletter"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// desk is a stand-in for an inspector that fails for a while; these tests are about when, not about Redis.
type desk struct {
	fails int
	calls []time.Duration // since the start
	began time.Time
}

func (d *desk) EachDeadLetter(context.Context, time.Time) iter.Seq2[zq.DeadLetter, error] {
	return func(yield func(zq.DeadLetter, error) bool) {
		d.calls = append(d.calls, time.Since(d.began))
		if len(d.calls) <= d.fails {
			yield(zq.DeadLetter{}, errBoom)
		}
	}
}

func (d *desk) DeadLetter(context.Context, string) (zq.DeadLetter, error) {
	return zq.DeadLetter{}, zq.ErrNotFound
}

func (d *desk) Replay(context.Context, string, ...zq.ReplayOption) error { return nil }

// Rounds come about every so often, and with growing pauses while they fail; each change is logged once.
func TestRequeueRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{fails: 8, began: time.Now()}
		var log strings.Builder
		r, err := deadletter.NewRequeue(d, deadletter.Every(10*time.Second), deadletter.RequeueLogger(lines(&log)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if err := r.Run(ctx); err != nil {
			t.Errorf("ended with %v", err)
		}
		for i := 1; i < len(d.calls); i++ {
			pause, most := d.calls[i]-d.calls[i-1], 10*time.Second
			least := most * 3 / 4
			if i <= d.fails {
				most = min(time.Second<<(i-1), time.Minute)
				least = most / 2
			}
			if pause < least || pause > most {
				t.Errorf("pause %d is %s, want %s to %s", i, pause, least, most)
			}
		}
		s := r.Stats()
		if s.Failed != 8 || s.Rounds != int64(len(d.calls)) || s.Rounds < 12 {
			t.Errorf("stats %+v after %d calls", s, len(d.calls))
		}
		if strings.Count(log.String(), "level=WARN") != 1 || strings.Count(log.String(), "level=INFO") != 1 {
			t.Errorf("logged\n%s", log.String())
		}
	})
}

// With a clock of one's own, a round comes when that says so.
func TestRequeueRunOnOwnClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{began: time.Now()}
		ticks := make(chan time.Time)
		pauses := make(chan time.Duration, 10)
		r, err := deadletter.NewRequeue(d, deadletter.Every(time.Hour), deadletter.Clock(time.Now, func(p time.Duration) <-chan time.Time {
			pauses <- p
			return ticks
		}))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		for want := range 3 {
			synctest.Wait()
			if got := r.Stats().Rounds; got != int64(want+1) {
				t.Errorf("%d rounds, want %d", got, want+1)
			}
			if p := <-pauses; p < 45*time.Minute || p > time.Hour {
				t.Errorf("pause %s", p)
			}
			if want < 2 {
				ticks <- time.Now()
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
