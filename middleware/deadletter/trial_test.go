package deadletter_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware/deadletter"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

var errBoom = errors.New("boom")

// trial is one queue on the shared server, and the letters that its middleware told of.
type trial struct {
	t       testing.TB
	rdb     *redis.Client
	queue   string
	prod    *zq.Producer
	look    *zq.Inspector
	letters chan deadletter.Letter
	team    []*zq.Consumer
}

func newTrial(t testing.TB) *trial {
	t.Helper()
	x := &trial{t: t, rdb: zqtest.Shared(t).Client(), queue: zqtest.Queue(t), letters: make(chan deadletter.Letter, 1000)}
	x.prod, x.look = x.other(x.queue)
	return x
}

// other is another queue of the trial's server.
func (x *trial) other(queue string) (*zq.Producer, *zq.Inspector) {
	x.t.Helper()
	p, err := zq.NewProducer(x.rdb, queue)
	x.must(err)
	i, err := zq.NewInspector(x.rdb, queue)
	x.must(err)
	return p, i
}

func (x *trial) must(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

func (x *trial) send(msgs ...zq.Message) {
	x.t.Helper()
	for _, m := range msgs {
		_, err := x.prod.Enqueue(x.t.Context(), m)
		x.must(err)
	}
}

func (x *trial) note(_ context.Context, _ *zq.Delivery, l deadletter.Letter) { x.letters <- l }

// guard wraps h in the middleware, with short pauses.
func (x *trial) guard(h zq.Handler, opts ...deadletter.Option) zq.Handler {
	x.t.Helper()
	all := append([]deadletter.Option{
		deadletter.OnDead(x.note), deadletter.Pause(10 * time.Millisecond), deadletter.Logger(slog.New(slog.DiscardHandler)),
	}, opts...)
	mw, err := deadletter.New(all...)
	x.must(err)
	return mw(h)
}

// start runs a consumer with three attempts a message until the test ends.
func (x *trial) start(h zq.Handler, changes ...func(*zq.ConsumerConfig)) *zq.Consumer {
	x.t.Helper()
	cfg := zq.ConsumerConfig{
		MaxAttempts: 3, Logger: slog.New(slog.DiscardHandler),
		RetryDelay: func(*zq.Delivery, error) time.Duration { return time.Millisecond },
	}
	for _, change := range changes {
		change(&cfg)
	}
	c, err := zq.NewConsumer(x.rdb, x.queue, h, cfg)
	x.must(err)
	x.must(c.Start(x.t.Context()))
	x.t.Cleanup(func() { _ = c.Stop(context.Background()) })
	x.team = append(x.team, c)
	return c
}

// stopAll stops the trial's consumers.
func (x *trial) stopAll() error {
	var all error
	for _, c := range x.team {
		all = errors.Join(all, c.Stop(context.Background()))
	}
	return all
}

// lines is a logger into text, for one goroutine at a time to read after the last one has written.
func lines(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// drained waits until no message is left but dead ones.
func (x *trial) drained() {
	x.t.Helper()
	zqtest.Eventually(x.t, limit, func() bool {
		d, err := x.look.Depth(x.t.Context())
		return err == nil && d.Unfinished() == 0 && d.Claims == 0
	}, "an empty queue")
}

// dead expects these dead letters, each as "id reason", in any order.
func (x *trial) dead(want ...string) {
	x.t.Helper()
	var got []string
	for l, err := range x.look.EachDeadLetter(x.t.Context(), time.Time{}) {
		x.must(err)
		got = append(got, l.Message.ID+" "+l.Reason)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		x.t.Errorf("dead letters\n%q, want\n%q", got, want)
	}
}

func (x *trial) letter() deadletter.Letter {
	x.t.Helper()
	return zqtest.Wait(x.t, x.letters, limit)
}

// noLetter expects that the hook was told of nothing more.
func (x *trial) noLetter() {
	x.t.Helper()
	select {
	case l := <-x.letters:
		x.t.Errorf("told of one letter too many: %+v", l)
	default:
	}
}

// received runs a consumer of another queue and gives what comes to it.
func (x *trial) received(queue string) <-chan zq.Delivery {
	x.t.Helper()
	got := make(chan zq.Delivery, 1000)
	c, err := zq.NewConsumer(x.rdb, queue, zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		got <- *d
		return nil
	}), zq.ConsumerConfig{Logger: slog.New(slog.DiscardHandler)})
	x.must(err)
	x.must(c.Start(x.t.Context()))
	x.t.Cleanup(func() { _ = c.Stop(context.Background()) })
	return got
}

func always(err error) zq.Handler {
	return zq.HandlerFunc(func(context.Context, *zq.Delivery) error { return err })
}
