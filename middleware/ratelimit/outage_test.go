package ratelimit_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware/ratelimit"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// journal is where a logger writes, from many goroutines.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) lines(word string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Count(j.text.String(), word)
}

// fewQuestions expects those that went out together when the outage began, 10 handlers', and one a second since.
func (x *trial) fewQuestions(began time.Time) {
	x.t.Helper()
	most := 10 + 1 + int(time.Since(began)/time.Second)
	if n := x.questions(); n > most {
		x.t.Errorf("asked %d times, want %d at most", n, most)
	}
}

// While the limiter's Redis is away messages run or are postponed, uncharged, as was chosen; that is told and logged
// once, and its return once. After that the rate holds again.
func TestLimiterAway(t *testing.T) {
	t.Parallel()
	for name, closed := range map[string]bool{"open": false, "closed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTrial(t)
			rdb, proxy := throughProxy(t, func(o *redis.Options) { o.MaxRetries, o.DialerRetries = -1, 1 })
			var log journal
			told := make(chan error, 100)
			opts := []ratelimit.Option{
				ratelimit.Logger(slog.New(slog.NewTextHandler(&log, nil))), ratelimit.OnLimiter(func(err error) { told <- err }),
			}
			if closed {
				opts = append(opts, ratelimit.FailClosed())
			}
			// The queue's own Redis is not away.
			x.start(shared(t, rdb, x.queue, 1000, 1000), nil, opts...)
			proxy.Cut()
			began := time.Now()
			x.send("k", ids("keyed", 20)...)
			x.send("", ids("plain", 20)...)
			if err := zqtest.Wait(t, told, limit); err == nil {
				t.Error("told that the limiter is back")
			}
			want := slices.Concat(ids("keyed", 20), ids("plain", 20))
			if closed {
				x.settled(40)
				if n := len(x.ran()); n != 0 {
					t.Errorf("%d ran", n)
				}
				x.fewQuestions(began)
				proxy.Heal()
			}
			x.settled(0)
			if !closed {
				x.fewQuestions(began)
				proxy.Heal()
			}
			if got := slices.Sorted(slices.Values(x.ran())); !slices.Equal(got, want) {
				t.Errorf("ran %v", got)
			}
			x.firstAttempts()
			zqtest.Eventually(t, limit, func() bool {
				x.send("", zqtest.Queue(t))
				x.settled(0)
				return len(told) > 0
			}, "news of the limiter's return")
			if err := <-told; err != nil || len(told) > 0 {
				t.Errorf("told %v, and %d more", err, len(told))
			}
			if log.lines("level=WARN") != 1 || log.lines("level=INFO") != 1 || log.lines("\n") != 2 {
				t.Errorf("logged\n%s", &log.text)
			}
		})
	}
}
