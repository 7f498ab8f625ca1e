package zqfx_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/zqueue/zqueue/middleware"
	"github.com/zqueue/zqueue/middleware/deadletter"
	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// pager tells somebody; it must be there as long as anything can die.
type pager struct{ told chan string }

func newPager(lc fx.Lifecycle, order *[]string) *pager {
	lc.Append(fx.StopHook(func() { *order = append(*order, "pager closed") }))
	return &pager{make(chan string, 10)}
}

func pagingChain(p *pager) (middleware.Plan, error) {
	return middleware.Standard(middleware.DeadLetter(deadletter.OnDead(
		func(_ context.Context, d *zq.Delivery, _ deadletter.Letter) { p.told <- d.ID }))), nil
}

// A chain's hooks reach the application's parts, which are closed after the handlers have drained.
func TestChainFromHasDependencies(t *testing.T) {
	t.Parallel()
	queue := zqtest.Queue(t)
	var order []string
	var p *zqfx.Producers
	var told *pager
	blocked := make(chan struct{})
	app := fxtest.New(t, shared(t), zqfx.Module(), zqfx.ChainFrom(pagingChain), fx.Supply(&order), fx.Provide(newPager),
		zqfx.HandleFunc(queue, Placed, func(ctx context.Context, _ *zq.Delivery, o OrderPlaced) error {
			if o.ID == "dies" {
				return zq.Dead("bad", nil)
			}
			close(blocked)
			<-ctx.Done()
			order = append(order, "handler returned")
			return context.Cause(ctx)
		}), zqfx.Queue(queue, zqfx.DrainTime(time.Millisecond)), fx.Populate(&p, &told))
	app.RequireStart()
	send(t, p, queue, "dies", zq.WithID("m-1"))
	want(t, told.told, "m-1")
	send(t, p, queue, "waits")
	zqtest.Wait(t, blocked, limit)
	app.RequireStop()
	if want := []string{"handler returned", "pager closed"}; !slices.Equal(order, want) {
		t.Errorf("order %q, want %q", order, want)
	}
}

// A hook of a chain may send; only not before the application is built.
func TestChainFromMaySend(t *testing.T) {
	t.Parallel()
	queue, other := zqtest.Queue(t), zqtest.Queue(t)
	run, ran := reporting()
	early := make(chan error, 1)
	chain := func(s *zqfx.SenderOf[OrderPlaced]) middleware.Plan {
		_, err := s.Send(t.Context(), OrderPlaced{})
		early <- err
		return middleware.Standard(middleware.DeadLetter(deadletter.OnDead(
			func(ctx context.Context, d *zq.Delivery, _ deadletter.Letter) {
				if _, err := s.Send(ctx, OrderPlaced{ID: "about " + d.ID}); err != nil {
					t.Error(err)
				}
			})))
	}
	var p *zqfx.Producers
	started(t, shared(t), zqfx.Module(), zqfx.HandleFunc(other, Placed, run), zqfx.Sender(other, Placed),
		zqfx.HandleFunc(queue, Placed, func(context.Context, *zq.Delivery, OrderPlaced) error { return zq.Dead("bad", nil) }),
		zqfx.ChainFrom(chain, zqfx.ForQueue(queue)), fx.Populate(&p))
	if err := zqtest.Wait(t, early, limit); err == nil || !strings.Contains(err.Error(), "not built yet") {
		t.Errorf("sent by a constructor: %v", err)
	}
	send(t, p, queue, "o-1", zq.WithID("m-1"))
	want(t, ran, "about m-1")
}

// One queue's chain may come from a constructor, and another instance's, of the same type.
func TestChainFromForAQueueAndAnInstance(t *testing.T) {
	t.Parallel()
	queue := zqtest.Queue(t)
	ran := make(chan string, 3)
	says := func(word string) func() (zqfx.Builder, error) {
		return func() (zqfx.Builder, error) { return middlewareOf(func(*zq.Delivery) { ran <- word }), nil }
	}
	var p *zqfx.Producers
	started(t, shared(t), zqfx.Module(), zqfx.HandleFunc(queue, Placed, nothing), fx.Populate(&p),
		zqfx.ChainFrom(says("common")), zqfx.ChainFrom(says("its own"), zqfx.ForQueue(queue)))
	send(t, p, queue, "o-1")
	want(t, ran, "its own")
}

// What is wrong with a constructor is told with the line that named it.
func TestChainFromRefusals(t *testing.T) {
	t.Parallel()
	handled := zqfx.HandleFunc("orders", Placed, nothing)
	none := shared(t)
	for name, c := range map[string]struct {
		option fx.Option
		want   string
	}{
		"nil":         {zqfx.ChainFrom(nil), "ChainFrom.*chain_from_test.go:.*constructor is nil"},
		"no function": {zqfx.ChainFrom(middleware.Standard()), "chain_from_test.go:.*a middleware.Plan, want a func.*method Build"},
		"wrong type":  {zqfx.ChainFrom(func() string { return "" }), "chain_from_test.go:.*method Build"},
		"nil result":  {zqfx.ChainFrom(func() zqfx.Builder { return nil }), "chain_from_test.go:.*constructor's result is nil"},
		"an error":    {zqfx.ChainFrom(func() (middleware.Plan, error) { return middleware.Plan{}, errors.New("no luck") }), "no luck"},
		"bad order": {
			zqfx.ChainFrom(func() middleware.Plan { return middleware.Ordered(middleware.Retry(), middleware.DeadLetter()) }),
			"ChainFrom.*chain_from_test.go:.*deadletter outside retry",
		},
		"twice": {fx.Options(zqfx.Chain(middleware.Standard()), zqfx.ChainFrom(pagingChain), fx.Provide(newPager), fx.Supply(&[]string{})), "two chains"},
		"an unknown queue": {
			zqfx.ChainFrom(func() middleware.Plan { return middleware.Standard() }, zqfx.ForQueue("mail")),
			`ChainFrom\(…, ForQueue\("mail"\)\) at .*a declared queue`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.ReplaceAll(failed(t, none, zqfx.Module(), handled, c.option), "\n", " ")
			if !regexp.MustCompile(c.want).MatchString(text) {
				t.Errorf("got %s\nwant %s", text, c.want)
			}
		})
	}
	if err := fx.ValidateApp(fx.NopLogger, none, zqfx.Module(), handled, zqfx.ChainFrom(pagingChain)); err == nil ||
		!strings.Contains(err.Error(), "*zqfx_test.pager") {
		t.Errorf("without its dependency: %v", err)
	}
}
