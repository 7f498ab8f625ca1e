package zqfx_test

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// OrderPlaced is the payload of these tests.
type OrderPlaced struct {
	ID string `json:"id"`
}

// Placed is its kind.
var Placed = zq.NewKind[OrderPlaced]("order.placed")

// handler makes a constructor of a handler that does fn.
func handler(fn func(ctx context.Context, d *zq.Delivery, o OrderPlaced) error) func() func(context.Context, *zq.Delivery, OrderPlaced) error {
	return func() func(context.Context, *zq.Delivery, OrderPlaced) error { return fn }
}

// reporting gives a handler that sends each payload's id to the channel, and the channel.
func reporting() (func(context.Context, *zq.Delivery, OrderPlaced) error, <-chan string) {
	ran := make(chan string, 100)
	return func(_ context.Context, _ *zq.Delivery, o OrderPlaced) error {
		ran <- o.ID
		return nil
	}, ran
}

// shared gives the shared server's client to the application.
func shared(t *testing.T) fx.Option { return client(zqtest.Shared(t).Client()) }

func client(rdb *redis.Client) fx.Option { return fx.Supply(rdb) }

// plain keeps the chain out of tests that are not about it.
func plain() fx.Option { return zqfx.Chain(zqfx.PlainChain(nil)) }

// started runs an application until the test ends.
func started(t *testing.T, opts ...fx.Option) {
	t.Helper()
	app := fxtest.New(t, opts...)
	app.RequireStart()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := app.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
}

// failed builds an application that must not build, and gives the error's text.
func failed(t *testing.T, opts ...fx.Option) string {
	t.Helper()
	app := fx.New(append([]fx.Option{fx.NopLogger}, opts...)...)
	if app.Err() == nil {
		t.Fatal("the application was built; want an error")
	}
	return app.Err().Error()
}

// send enqueues an order through the queue's producer.
func send(t *testing.T, p *zqfx.Producers, queue, id string, opts ...zq.MessageOption) {
	t.Helper()
	producer, err := p.For(queue)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if _, err := Placed.Send(ctx, producer, OrderPlaced{ID: id}, opts...); err != nil {
		t.Fatal(err)
	}
}

// want waits for the next id.
func want(t *testing.T, ran <-chan string, id string) {
	t.Helper()
	if got := zqtest.Wait(t, ran, limit); got != id {
		t.Errorf("ran %q, want %q", got, id)
	}
}

// built builds an application that is not started.
func built(t *testing.T, opts ...fx.Option) {
	t.Helper()
	if err := fx.New(append([]fx.Option{fx.NopLogger}, opts...)...).Err(); err != nil {
		t.Fatal(err)
	}
}

// mentions fails the test unless the text has all the words.
func mentions(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in:\n%s", w, text)
		}
	}
}

// configured changes the configuration of the default instance.
func configured(change func(*zqfx.Config)) fx.Option {
	return fx.Decorate(func(c zqfx.Config) zqfx.Config {
		change(&c)
		return c
	})
}
