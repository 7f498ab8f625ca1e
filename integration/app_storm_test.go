//go:build unix

package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"

	"github.com/zqueue/zqueue/middleware"
	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

var stormChild = registered("storm", runStorm)

// stormConsumers is how many consumers lose Redis at one time, in one process, each on a queue of its own.
const stormConsumers = 50

// stormSpec is what that process needs to know.
type stormSpec struct{ Addr, Queue string }

func (s stormSpec) queue(n int) string { return fmt.Sprintf("%s.%d", s.Queue, n) }

// weather is a line that the process says: of a call to Redis that failed, or a line of its log.
type weather struct {
	At    time.Time     `json:"at"`
	Queue string        `json:"queue,omitempty"`
	Call  string        `json:"call,omitempty"`
	Log   string        `json:"log,omitempty"`   // what it says, without times and errors
	Redis string        `json:"redis,omitempty"` // a line of go-redis's own log
	CPU   time.Duration `json:"cpu"`             // of the process so far
}

const weatherPrefix = "storm.weather "

// station writes weather, and is its process's log.
type station struct {
	failed chan struct{} // closed with the first failure
	once   sync.Once
}

func (st *station) say(w weather) {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail on the process itself
	w.At, w.CPU = time.Now(), time.Duration(u.Utime.Nano()+u.Stime.Nano())
	b, err := json.Marshal(w)
	if err != nil {
		panic(err) // no weather has what JSON cannot say
	}
	_, _ = os.Stdout.WriteString(weatherPrefix + string(b) + "\n")
}

// Write is a line of log.
func (st *station) Write(line []byte) (int, error) {
	var l struct{ Msg, Queue string }
	if err := json.Unmarshal(line, &l); err != nil {
		return 0, err
	}
	st.say(weather{Queue: l.Queue, Log: l.Msg})
	return len(line), nil
}

// Printf is a line of go-redis, which has one log for the whole process.
func (st *station) Printf(_ context.Context, format string, args ...any) {
	st.say(weather{Redis: fmt.Sprintf(format, args...)})
}

// Build is the standard chain, with an ear for calls that fail.
func (st *station) Build(env middleware.Env) (middleware.Stack, error) {
	s, err := middleware.Standard(middleware.Idempotency(idempotency.FromID())).Build(env)
	s.Observers = append(s.Observers, zq.Observer{Failed: func(call string, _ error) {
		st.once.Do(func() { close(st.failed) })
		st.say(weather{Queue: env.Queue, Call: call})
	}})
	return s, err
}

// handle has a held message wait until Redis is away, so that its outcome cannot be recorded.
func (st *station) handle(ctx context.Context, d *zq.Delivery) error {
	if d.Kind != "held" {
		return nil
	}
	_, _ = os.Stdout.WriteString("holding\n")
	select {
	case <-st.failed:
	case <-ctx.Done():
	}
	return nil
}

// runStorm is the process's main function.
func runStorm() {
	var s stormSpec
	if err := json.Unmarshal([]byte(os.Getenv("ZQ_STORM")), &s); err != nil {
		fmt.Fprintln(os.Stderr, "spec:", err)
		os.Exit(2)
	}
	st := &station{failed: make(chan struct{})}
	redis.SetLogger(st)
	opts := []fx.Option{
		fx.NopLogger,
		fx.Provide(func(lc fx.Lifecycle) *redis.Client {
			// No tries of the client's own, which would spread them: the pace is what is on trial.
			rdb := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, DialerRetries: 1})
			lc.Append(fx.StopHook(rdb.Close))
			return rdb
		}),
		fx.Supply(slog.New(slog.NewJSONHandler(st, &slog.HandlerOptions{Level: slog.LevelWarn}))),
		zqfx.Module(), zqfx.Chain(st),
		fx.Invoke(func(lc fx.Lifecycle, _ *zqfx.Worker) {
			lc.Append(fx.StartHook(func() { _, _ = os.Stdout.WriteString("up\n") }))
		}),
	}
	for n := range stormConsumers {
		opts = append(opts, zqfx.Queue(s.queue(n), zqfx.Concurrency(4)),
			zqfx.HandleRaw(s.queue(n), func() func(context.Context, *zq.Delivery) error { return st.handle }))
	}
	fx.New(opts...).Run()
}

// B61: fifty consumers in the standard chain lose Redis at one time, with messages at work. They try on at a pace that
// falls, out of step, with a few lines of log each however long it lasts, and without using the processor; when Redis
// is back they go on as if nothing had been.
func TestB61StormIsQuiet(t *testing.T) {
	t.Parallel()
	server := zqt.Redis(t)
	proxy := zqt.Proxy(t, server.Addr())
	s := stormSpec{Addr: proxy.Addr(), Queue: zqt.Queue(t)}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	p := zqt.Child(t, stormChild, "ZQ_STORM="+string(text))
	p.Expect("up", patience)
	x := &storm{t: t, spec: s, rdb: server.Client(), p: p}
	x.send("held")
	for range stormConsumers {
		p.Expect("holding", patience)
	}
	proxy.Cut()
	began := time.Now()
	x.await(9) // 20 ms doubled up to 2 s: the ninth comes after some five seconds
	lasted := time.Since(began)
	proxy.Heal()
	x.send("more")
	x.done(2)
	p.Terminate()
	if code := p.Wait(patience); code != 0 {
		t.Errorf("it ended with code %d", code)
	}
	x.judge(began, lasted)
}

type storm struct {
	t    *testing.T
	spec stormSpec
	rdb  *redis.Client
	p    *zqt.Process
}

// send sends a message to each queue.
func (x *storm) send(kind string) {
	x.t.Helper()
	for n := range stormConsumers {
		p, err := zq.NewProducer(x.rdb, x.spec.queue(n))
		if err == nil {
			_, err = p.Enqueue(x.t.Context(), zq.Message{ID: kind, Kind: kind})
		}
		if err != nil {
			x.t.Fatal(err)
		}
	}
}

// await takes lines until each consumer has failed to claim n times.
func (x *storm) await(n int) {
	x.t.Helper()
	failures, enough := map[string]int{}, 0
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for enough < stormConsumers {
		select {
		case line := <-x.p.Lines():
			if w, is := weatherIn(line); is && w.Call == "claim" {
				if failures[w.Queue]++; failures[w.Queue] == n {
					enough++
				}
			}
		case <-timer.C:
			x.t.Fatalf("only %d of %d consumers try on: %v", enough, stormConsumers, failures)
		}
	}
}

// done waits until each queue has acked so many messages and has none left.
func (x *storm) done(n int64) {
	x.t.Helper()
	for i := range stormConsumers {
		look, err := zq.NewInspector(x.rdb, x.spec.queue(i))
		if err != nil {
			x.t.Fatal(err)
		}
		zqt.Eventually(x.t, patience, func() bool {
			c, err := look.Counters(x.t.Context())
			return err == nil && c.Acked == n && c.Failed+c.Dead+c.Reaped == 0
		}, "all are acked in "+x.spec.queue(i))
	}
}

func weatherIn(line string) (w weather, is bool) {
	text, is := strings.CutPrefix(line, weatherPrefix)
	return w, is && json.Unmarshal([]byte(text), &w) == nil
}

// judge looks at what the process said while Redis was away.
func (x *storm) judge(began time.Time, lasted time.Duration) {
	x.t.Helper()
	var during []weather
	calls, lines, foreign := map[string]int{}, map[string]int{}, 0
	for _, line := range x.p.Output() {
		w, is := weatherIn(line)
		if !is || w.At.After(began.Add(lasted)) {
			continue
		}
		during = append(during, w)
		switch {
		case w.Call != "":
			calls[w.Queue]++
		case w.Redis != "":
			foreign++
		default:
			lines[w.Queue+": "+w.Log]++
		}
	}
	if len(during) == 0 {
		x.t.Fatal("no weather")
	}
	// Claims, waits and records each double their pause from 20 ms or more up to 2 s, with half of it as jitter.
	most := 3 * (8 + int(lasted/time.Second))
	for queue, n := range calls {
		if n > most {
			x.t.Errorf("%s tried %d times within %v, want at most %d", queue, n, lasted, most)
		}
	}
	for line, n := range lines { // once, however long it lasts
		if n > 1 {
			x.t.Errorf("logged %d times: %s", n, line)
		}
	}
	failures := len(during) - len(lines) - foreign
	if len(lines) > 8*stormConsumers || foreign > failures {
		x.t.Errorf("%d lines of log and %d of go-redis, from %d consumers with %d failures", len(lines), foreign, stormConsumers,
			failures)
	}
	used := during[len(during)-1].CPU - during[0].CPU
	if used > lasted/2 {
		x.t.Errorf("%v of processor time within %v", used, lasted)
	}
	crowd := crowded(during, began.Add(lasted/2))
	if crowd > stormConsumers/2 {
		x.t.Errorf("%d of %d consumers tried within the same 50 ms, long after the start", crowd, stormConsumers)
	}
	x.t.Logf("Redis was away for %v: %d failures, %d lines of log and %d of go-redis, %v of processor time, a crowd of %d",
		lasted, failures, len(lines), foreign, used, crowd)
}

// crowded is how many consumers at most failed to claim within 50 ms, after some time.
func crowded(during []weather, after time.Time) (most int) {
	var at []time.Time
	for _, w := range during {
		if w.Call == "claim" && w.At.After(after) {
			at = append(at, w.At)
		}
	}
	slices.SortFunc(at, time.Time.Compare)
	first := 0
	for i := range at {
		for at[i].Sub(at[first]) > 50*time.Millisecond {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}
