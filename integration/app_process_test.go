package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"
	"go.uber.org/goleak"

	"github.com/zqueue/zqueue/middleware"
	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/middleware/logging"
	"github.com/zqueue/zqueue/middleware/retry"
	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// The application is a child beside the worker: registered as a variable is made, which is ahead of TestMain.
var appChild = registered("app", runApp)

// registered gives the name.
func registered(name string, run func()) string {
	zqt.RegisterChild(name, run)
	return name
}

// appSpec is what a process of the application needs to know.
type appSpec struct {
	Addr, Queue, Name string
	Seed              uint64
	Lease             time.Duration
	Holds             bool // it is the first process, in which held orders wait
}

// tillDB is where the handler keeps what it has done: a database of its own beside the queue's.
const tillDB = 1

func tillKey(queue string) string { return "app:" + queue + ":payments" }

// runApp is the main function of a process of the application.
func runApp() {
	var s appSpec
	if err := json.Unmarshal([]byte(os.Getenv("ZQ_APP")), &s); err != nil {
		fmt.Fprintln(os.Stderr, "spec:", err)
		os.Exit(2)
	}
	fx.New(s.options(&diary{worker: s.Name})).Run()
	// Run has exited by itself unless the stop was clean.
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, "after the stop:", err)
		os.Exit(3)
	}
}

// options are the application, as a user would write it.
func (s appSpec) options(y *diary) fx.Option {
	return fx.Options(
		fx.WithLogger(func() fxevent.Logger { return fxevent.NopLogger }),
		fx.Supply(s, y),
		fx.Provide(newAppClient, newAppTracing, newAppMetrics, newAppLog, newTill),
		zqfx.Module(),
		zqfx.Queue(s.Queue, zqfx.Ordered(), zqfx.Concurrency(24), zqfx.MaxAttempts(appAttempts), zqfx.Lease(s.Lease),
			zqfx.DrainTime(300*time.Millisecond)),
		zqfx.Handle(s.Queue, orderPlaced, newCashier),
		zqfx.Chain(appPlan(y)),
		fx.Invoke(func(lc fx.Lifecycle, _ *zqfx.Worker) { lc.Append(fx.StartHook(func() { y.say("up") })) }),
	)
}

// appPlan is the standard chain with all that this trial needs, for the application and for who sends to it.
func appPlan(y *diary) middleware.Plan {
	return middleware.Standard(
		middleware.Retry(retry.Backoff(retry.Curve{Initial: 2 * time.Millisecond, Max: 20 * time.Millisecond, Jitter: 0.5})),
		middleware.Timeout(time.Minute),
		middleware.Logging(logging.Level(zq.ActionDead, slog.LevelInfo)),
		middleware.Idempotency(idempotency.FromKind(orderPlaced, order.business), idempotency.OnOutcome(y.outcome)),
	)
}

func newAppClient(lc fx.Lifecycle, s appSpec) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr})
	lc.Append(fx.StopHook(rdb.Close))
	return rdb
}

func newAppTracing(lc fx.Lifecycle, y *diary) trace.TracerProvider {
	p := sdktrace.NewTracerProvider(sdktrace.WithSyncer(y))
	lc.Append(fx.StopHook(p.Shutdown))
	return p
}

// newAppMetrics says at the stop how many runs were counted.
func newAppMetrics(lc fx.Lifecycle, y *diary) metric.MeterProvider {
	reader := sdkmetric.NewManualReader()
	p := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	lc.Append(fx.StopHook(func(ctx context.Context) error {
		var got metricdata.ResourceMetrics
		if err := reader.Collect(ctx, &got); err != nil {
			return err
		}
		y.write(entry{Saw: sawConsumed, Count: counted(got, "messaging.client.consumed.messages")})
		return p.Shutdown(ctx)
	}))
	return p
}

// counted is the sum over all series of a counter.
func counted(got metricdata.ResourceMetrics, name string) (n int64) {
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == name {
				for _, p := range sum.DataPoints {
					n += p.Value
				}
			}
		}
	}
	return n
}

func newAppLog() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

// till counts the payments for each order, which is the effect that the world sees.
type till struct {
	rdb *redis.Client
	key string
}

func newTill(lc fx.Lifecycle, s appSpec) *till {
	// No repeats: a payment whose reply is lost is one that failed.
	t := &till{rdb: redis.NewClient(&redis.Options{Addr: s.Addr, DB: tillDB, MaxRetries: -1}), key: tillKey(s.Queue)}
	lc.Append(fx.StopHook(t.rdb.Close))
	return t
}

func (t *till) pay(ctx context.Context, number int) error {
	return t.rdb.HIncrBy(ctx, t.key, strconv.Itoa(number), 1).Err()
}

// cashier is the handler.
type cashier struct {
	spec  appSpec
	diary *diary
	till  *till
}

func newCashier(s appSpec, y *diary, t *till) *cashier { return &cashier{s, y, t} }

// Handle obeys the order's lot, and writes down what it does.
func (c *cashier) Handle(ctx context.Context, d *zq.Delivery, o order) error {
	e := c.diary.run(ctx, d, o)
	e.Saw = sawStart
	c.diary.write(e)
	e.Saw = sawFailed
	defer func() { c.diary.write(e) }() // also of a panic
	var err error
	e.Saw, err = c.work(ctx, d, o)
	return err
}

func (c *cashier) work(ctx context.Context, d *zq.Delivery, o order) (string, error) {
	if o.Hold && c.spec.Holds {
		c.diary.say("holding")
		<-ctx.Done()
		return sawReleased, context.Cause(ctx)
	}
	lot := lotOf(c.spec.Seed, o.Number)
	switch {
	case d.Attempt < lot.last():
		return sawFailed, lot.fails(c.spec.Seed, o.Number, d.Attempt)
	case lot.dies != "":
		return sawDead, lot.death()
	}
	// What is under way when the application stops is finished, as the promise of a drain has it.
	if err := c.till.pay(context.WithoutCancel(ctx), o.Number); err != nil {
		return sawFailed, err
	}
	return sawPaid, nil
}
