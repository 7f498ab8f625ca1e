package zqfx

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// F14, B49: fx lets the panic of a hook through; ours make it an error, with its place.
func TestF14PanicInHookIsError(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for name, value := range map[string]any{"a text": "boom", "an error": boom, "nothing": nil} {
		hook := guarded("start", func(context.Context) error { panic(value) })
		err := hook(t.Context())
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, want := range []string{"zqfx: start panicked", "lifecycle_internal_test.go"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: no %q in %q", name, want, err)
			}
		}
	}
	if err := guarded("stop", func(context.Context) error { return boom })(t.Context()); !errors.Is(err, boom) {
		t.Errorf("a hook's own error became %v", err)
	}
}

// F15: the end of a consumer is told once, by whoever comes first: by the watcher to OnFatal, or by the stop to fx.
func TestF15EachEndIsToldOnce(t *testing.T) {
	t.Parallel()
	for _, stopFirst := range []bool{true, false} {
		queue := zqtest.Queue(t)
		deaf := make(chan struct{})
		defer close(deaf)
		entered := make(chan struct{})
		c, err := zq.NewConsumer(zqtest.Shared(t).Client(), queue, zq.HandlerFunc(func(context.Context, *zq.Delivery) error {
			close(entered)
			<-deaf
			return nil
		}), zq.ConsumerConfig{DrainTime: time.Millisecond, Grace: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		p, err := zq.NewProducer(zqtest.Shared(t).Client(), queue)
		if err == nil {
			_, err = p.Enqueue(t.Context(), zq.Message{})
		}
		if err := errors.Join(err, c.Start(t.Context())); err != nil {
			t.Fatal(err)
		}
		zqtest.Wait(t, entered, 20*time.Second)
		told := 0
		w := &Worker{fatal: &fatal{log: slog.New(slog.DiscardHandler), policy: FatalFunc(func(string, error) { told++ })}}
		r := &runner{queue: &queuePlan{name: queue}, consumer: c}
		if stopFirst {
			err = r.stop(t.Context())
			w.watch(r)
		} else {
			_ = c.Stop(t.Context()) // by itself, as far as anybody knows
			w.watch(r)
			err = r.stop(t.Context())
		}
		if (err != nil) != stopFirst || (told == 1) == stopFirst {
			t.Errorf("stop first %t: the stop says %v, OnFatal was told %d times", stopFirst, err, told)
		}
	}
}
