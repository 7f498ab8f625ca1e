package integration_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/effect"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// An error that panics whatever it is asked.
type viciousError struct{}

func (viciousError) Error() string   { panic("no words") }
func (viciousError) Is(error) bool   { panic("not this, nor that") }
func (viciousError) As(any) bool     { panic("not as that") }
func (viciousError) Unwrap() error   { panic("nothing inside") }
func (viciousError) Timeout() bool   { panic("no time") }
func (viciousError) Temporary() bool { panic("no time") }

// An error that is a nil pointer.
type absentError struct{ text string }

func (e *absentError) Error() string { return e.text }

// vicious are handlers that do on their first run what no handler should, and the text that is kept of it.
func vicious() map[string]struct {
	do   func(d *zq.Delivery) error
	says string
} {
	type row = struct {
		do   func(d *zq.Delivery) error
		says string
	}
	return map[string]row{
		"panics":                      {func(*zq.Delivery) error { panic("boom") }, "boom"},
		"panics with nil":             {func(*zq.Delivery) error { panic(nil) }, "nil"}, //nolint:govet // that is the point
		"panics with an error":        {func(*zq.Delivery) error { panic(errors.New("boom")) }, "boom"},
		"panics with a verdict":       {func(*zq.Delivery) error { panic(zq.RetryAfter(0, errors.New("boom"))) }, "boom"},
		"panics with a vicious error": {func(*zq.Delivery) error { panic(viciousError{}) }, ""},
		"panics with a lot":           {func(*zq.Delivery) error { panic(strings.Repeat("é", 1<<20)) }, "éé"},
		"ends its goroutine":          {func(*zq.Delivery) error { runtime.Goexit(); return nil }, "Goexit"},
		"vicious error":               {func(*zq.Delivery) error { return viciousError{} }, ""},
		"wrapped vicious error":       {func(*zq.Delivery) error { return fmt.Errorf("w: %w", error(&quiet{viciousError{}})) }, "w: quiet"},
		"retry with a vicious":        {func(*zq.Delivery) error { return zq.RetryAfter(0, viciousError{}) }, ""},
		"nil pointer":                 {func(*zq.Delivery) error { return (*absentError)(nil) }, ""},
		"nil PanicError":              {func(*zq.Delivery) error { return (*zq.PanicError)(nil) }, ""},
		"nil EffectError":             {func(*zq.Delivery) error { return (*zq.EffectError)(nil) }, ""},
		"error of bad UTF-8":          {func(*zq.Delivery) error { return errors.New("a\xffb") }, "ab"},
		"error of NUL and bars":       {func(*zq.Delivery) error { return errors.New("a\x00|b\x00|c") }, "a\x00|b\x00|c"},
		"long error":                  {func(*zq.Delivery) error { return errors.New(strings.Repeat("é", 1<<16)) }, "éé"},
		"many errors":                 {func(*zq.Delivery) error { return errors.Join(errors.New("a"), nil, errors.New("b")) }, "a\nb"},
		"spoils its delivery":         {spoil, "spoiled"},
		"effect that fails":           {func(d *zq.Delivery) error { return d.Effect(effect.IfExists("nothing")) }, "exists"},
	}
}

// quiet hides an error's text, but not what it wraps.
type quiet struct{ err error }

func (q *quiet) Error() string { return "quiet" }
func (q *quiet) Unwrap() error { return q.err }

// spoil changes all that a handler can reach.
func spoil(d *zq.Delivery) error {
	for i := range d.Body {
		d.Body[i] = 'X'
	}
	d.Queue, d.ID, d.Key, d.Kind, d.Headers, d.Score = "other", "other", "other", "other", nil, -1
	return errors.New("spoiled")
}

// Whatever a handler does, its message is tried again, unchanged, and those behind it wait for that.
func TestHostileHandlers(t *testing.T) {
	t.Parallel()
	for name, c := range vicious() {
		for _, key := range []string{"", "k"} {
			t.Run(name+" "+key, func(t *testing.T) {
				t.Parallel()
				x := newTrial(t)
				x.sendAll(zq.Message{ID: "first", Key: key, Body: []byte("body")}, zq.Message{ID: "second", Key: key})
				ran := make(chan zq.Delivery, 10)
				x.start(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
					if d.ID == "first" && d.Attempt == 1 {
						return c.do(d)
					}
					ran <- *d
					return nil
				}), zq.ConsumerConfig{RetryDelay: shortRetry, Concurrency: 1, MaxAttempts: 3})
				for range 2 {
					d := zqt.Wait(t, ran, patience)
					if d.ID != "first" {
						continue
					}
					if d.Attempt != 2 || string(d.Body) != "body" || !strings.Contains(d.LastError, c.says) || len(d.LastError) > 512 || !utf8.ValidString(d.LastError) {
						t.Errorf("second run: attempt %d, body %q, last error %.100q, want it to say %q", d.Attempt, d.Body, d.LastError, c.says)
					}
				}
				x.settled()
				x.over(2, 0)
				if key == "k" {
					x.inStartOrder(ran)
				}
			})
		}
	}
}

// inStartOrder expects nothing more to have run.
func (x *trial) inStartOrder(ran <-chan zq.Delivery) {
	x.t.Helper()
	select {
	case d := <-ran:
		x.t.Errorf("%s ran once more", d.ID)
	default:
	}
}

// The same on the last attempt: it dies, with what can be said of it, and the others go on.
func TestHostileHandlersOnTheLastAttempt(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	table := vicious()
	for name := range table {
		x.send(zq.Message{ID: name, Key: "k", Body: []byte("body")})
	}
	x.start(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error { return table[d.ID].do(d) }), zq.ConsumerConfig{MaxAttempts: 1})
	x.over(len(table), len(table))
	letters, err := x.look.DeadLetters(t.Context(), time.Time{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range letters {
		says := table[l.Message.ID].says
		if l.Reason != zq.ReasonAttempts || !strings.Contains(l.Error, says) || len(l.Error) > 4<<10 || string(l.Message.Body) != "body" || l.Attempts != 1 {
			t.Errorf("%s: reason %q, error %.100q, body %q, attempts %d", l.Message.ID, l.Reason, l.Error, l.Message.Body, l.Attempts)
		}
	}
}

// Policies are the user's code too.
func TestHostileRetryDelay(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]func(*zq.Delivery, error) time.Duration{
		"panics":      func(*zq.Delivery, error) time.Duration { panic("no delay") },
		"panics once": func(d *zq.Delivery, _ error) time.Duration { return time.Duration(1 / (d.Attempt - 1)) },
		"negative":    func(*zq.Delivery, error) time.Duration { return -time.Hour },
		"spoils":      func(d *zq.Delivery, _ error) time.Duration { _ = spoil(d); return 0 },
		"asks":        func(_ *zq.Delivery, err error) time.Duration { return time.Duration(len(err.Error())) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTrial(t)
			x.sendAll(zq.Message{ID: "a", Key: "k"}, zq.Message{ID: "b", Key: "k"}, zq.Message{ID: "c"})
			ran := make(chan string, 10)
			c := x.start(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
				if d.Attempt < 3 {
					return errors.New("no")
				}
				ran <- d.ID
				return nil
			}), zq.ConsumerConfig{RetryDelay: policy})
			if strings.HasPrefix(name, "panics") { // it comes back by the default delay
				zqt.Eventually(t, patience, func() bool { return c.Stats().Retried >= 2 && x.counters().Failed >= 2 }, "both failures are recorded")
				x.stop(c)
				x.healthy()
				return
			}
			for range 3 {
				zqt.Wait(t, ran, patience)
			}
			x.over(3, 0)
		})
	}
}

// What a reason of a dead letter says cannot break its story.
func TestHostileReasons(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	reasons := []string{"", "card", "a\x00b", "a\x00\x00\x00\x00\x00\x00b", "\x00", strings.Repeat("é", 1000), "a|b|c", "a\nb", "\xff\xfe", "%s%n"}
	for i := range reasons {
		x.send(zq.Message{ID: fmt.Sprint(i), Key: "k"})
	}
	died, alive := make(chan string, 100), make(chan string, 100)
	x.start(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		if d.Replays > 0 {
			alive <- d.ID
			return nil
		}
		var i int
		if _, err := fmt.Sscan(d.ID, &i); err != nil {
			return err
		}
		died <- d.ID
		return zq.Dead(reasons[i], errors.New("because\x00of\x00that"))
	}), zq.ConsumerConfig{})
	for range reasons {
		zqt.Wait(t, died, patience)
	}
	x.drained()
	for i, reason := range reasons {
		l, err := x.look.DeadLetter(t.Context(), fmt.Sprint(i))
		if err != nil || l.Attempts != 1 || l.Losses != 0 || l.Replays != 0 || l.Score != float64(l.Sequence) || l.Error != "because\x00of\x00that" || len(l.Reason) > 64 {
			t.Errorf("reason %.40q: %+v, %v", reason, l, err)
		}
		if err := x.look.Replay(t.Context(), fmt.Sprint(i)); err != nil {
			t.Errorf("reason %.40q: %v", reason, err)
		}
		if id := zqt.Wait(t, alive, patience); id != fmt.Sprint(i) {
			t.Errorf("%s came back instead of %d", id, i)
		}
	}
	x.over(len(reasons), 0)
}
