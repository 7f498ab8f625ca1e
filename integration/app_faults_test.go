package integration_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/zqueue/zqueue/middleware"
	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/middleware/retry"
	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// guest is an application with one queue in this process, in the standard chain with idempotency by a header.
type guest struct {
	*trial
	spans  *tracetest.SpanRecorder
	reader *sdkmetric.ManualReader
	app    *fxtest.App

	mu       sync.Mutex
	log      bytes.Buffer
	outcomes map[idempotency.Outcome]int
}

// headOrder is the header with a guest's business key.
const headOrder = "order"

// host runs an application until the test ends.
func (x *trial) host(rdb *redis.Client, opts []idempotency.Option, layers []middleware.Layer, queue []zqfx.QueueOption,
	handler func(context.Context, *zq.Delivery) error,
) *guest {
	x.t.Helper()
	g := &guest{
		trial: x, spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader(), outcomes: map[idempotency.Outcome]int{},
	}
	opts = append(opts[:len(opts):len(opts)], idempotency.OnOutcome(g.told)) // the caller's list stays as it is
	layers = append(layers, middleware.Idempotency(idempotency.FromHeader(headOrder), opts...),
		middleware.Retry(retry.Backoff(retry.Curve{Initial: time.Millisecond, Max: time.Millisecond})))
	g.app = fxtest.New(x.t, fx.NopLogger,
		fx.Supply(rdb, slog.New(slog.NewTextHandler(g, nil)),
			fx.Annotate(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(g.spans)), fx.As(new(trace.TracerProvider))),
			fx.Annotate(sdkmetric.NewMeterProvider(sdkmetric.WithReader(g.reader)), fx.As(new(metric.MeterProvider)))),
		zqfx.Module(), zqfx.Queue(x.queue, queue...), zqfx.Chain(middleware.Standard(layers...)),
		zqfx.HandleRaw(x.queue, func() func(context.Context, *zq.Delivery) error { return handler }))
	g.app.RequireStart()
	x.t.Cleanup(func() { _ = g.app.Stop(context.Background()) })
	return g
}

func (g *guest) told(_ context.Context, _ *zq.Delivery, o idempotency.Outcome, _ idempotency.Record) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.outcomes[o]++
}

// Write is a line of log.
func (g *guest) Write(line []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.log.Write(line)
}

// logged is how many lines have the text.
func (g *guest) logged(text string) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for line := range strings.Lines(g.log.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func (g *guest) outcome(o idempotency.Outcome) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.outcomes[o]
}

// counted is the sum of a counter.
func (g *guest) counted(name string) int64 {
	g.t.Helper()
	var got metricdata.ResourceMetrics
	g.must(g.reader.Collect(context.Background(), &got))
	return counted(got, name)
}

// attemptsOf are the attempt numbers and failures on a message's process spans, in their order.
func (g *guest) attemptsOf(id string) (attempts []string) {
	for _, s := range g.spans.Ended() {
		if e := spanEntry(s); e.ID == id && s.Name() == "process "+g.queue {
			attempts = append(attempts, fmt.Sprintf("%d failed=%t", e.Attempt, e.Failed))
		}
	}
	return attempts
}

// record is the idempotency store's of a business key.
func (x *trial) record(key string) idempotency.Record {
	x.t.Helper()
	store, err := idempotency.NewRedisStore(x.rdb, "zq")
	x.must(err)
	r, err := store.Look(x.t.Context(), idempotency.Name{Scope: x.queue, Key: key})
	x.must(err)
	return r
}

// B2 in the whole chain: ten messages of a key are claimed together, and the last one starts when more time has
// passed than the lease and the timeout have. The head fails three times. The nine behind it are as fresh as ever:
// first attempts, in time, with no mark before they start.
func TestB2TailDoesNotPayInTheChain(t *testing.T) {
	t.Parallel()
	const limit, slow = 2 * time.Second, 300 * time.Millisecond
	x := newTrial(t)
	x.warm()
	ids := numbers(0, 10)
	for _, n := range ids {
		x.send(zq.Message{ID: fmt.Sprint("m", n), Key: "k", Headers: map[string]string{headOrder: fmt.Sprint("order-", n)}})
	}
	ran, goOn := make(chan zq.Delivery, 100), make(chan struct{})
	g := x.host(x.rdb, nil, []middleware.Layer{middleware.Timeout(limit)},
		[]zqfx.QueueOption{zqfx.Ordered(), zqfx.Lease(limit), zqfx.Concurrency(2)},
		func(ctx context.Context, d *zq.Delivery) error {
			if strings.HasPrefix(d.ID, "warm") {
				return nil
			}
			ran <- *d
			if d.ID == "m0" && d.Attempt == 1 {
				<-goOn
			}
			if d.ID == "m0" && d.Attempt <= 3 {
				return errMixed
			}
			pass(ctx, slow)
			return ctx.Err()
		})
	first := zqt.Wait(t, ran, patience)
	zqt.Eventually(t, patience, func() bool { return x.depth().Running == 10 }, "the ten, and they alone, are claimed")
	for _, n := range ids[1:] {
		if r := x.record(fmt.Sprint("order-", n)); r.State != idempotency.StateNone {
			t.Errorf("m%d is marked before it starts: %+v", n, r)
		}
	}
	close(goOn)
	began := time.Now()
	want := []string{"m0 1", "m0 2", "m0 3", "m0 4", "m1 1", "m2 1", "m3 1", "m4 1", "m5 1", "m6 1", "m7 1", "m8 1", "m9 1"}
	for i, run := range want {
		d := first
		if i > 0 {
			d = zqt.Wait(t, ran, patience)
		}
		if got := fmt.Sprint(d.ID, " ", d.Attempt); got != run || d.Losses != 0 {
			t.Errorf("run %d is %s with %d losses, want %s", i, got, d.Losses, run)
		}
	}
	if took := time.Since(began); took < limit {
		t.Errorf("this is no trial: the last one started after %v", took)
	}
	x.over(40, 0)
	for _, n := range ids[1:] {
		if got := fmt.Sprint(g.attemptsOf(fmt.Sprint("m", n))); got != "[1 failed=false]" {
			t.Errorf("m%d has the spans %s", n, got)
		}
	}
	lost, busy := g.counted("messaging.zq.leases.lost"), g.outcome(idempotency.InProgress)
	if c := x.counters(); c.Reaped != 0 || c.Failed != 3 || lost != 0 || busy != 0 {
		t.Errorf("counters %+v, %d leases lost, %d found somebody at their order", c, lost, busy)
	}
}

// B28 in the whole chain: a message that has waited for longer than a mark lasts runs for three times as long as that,
// in one application, while another one looks after the same queue and is given the order again and again. The order
// is refused as long as it runs, and skipped after that.
func TestB28RunningOrderStaysRefused(t *testing.T) {
	t.Parallel()
	const ttl = time.Second
	x := newTrial(t)
	running, goOn := make(chan time.Time, 10), make(chan struct{})
	var runs atomic.Int64
	handler := func(context.Context, *zq.Delivery) error {
		runs.Add(1)
		running <- time.Now()
		<-goOn
		return nil
	}
	opts := []idempotency.Option{idempotency.RunningTTL(ttl), idempotency.BusyDelay(50*time.Millisecond, 100*time.Millisecond)}
	guests := []*guest{x.host(x.rdb, opts, nil, nil, handler), x.host(x.rdb, opts, nil, nil, handler)}
	outcome := func(o idempotency.Outcome) int { return guests[0].outcome(o) + guests[1].outcome(o) }
	head := map[string]string{headOrder: "o-1"}
	x.send(zq.Message{ID: "a", Headers: head, Delay: ttl + ttl/5})
	began := zqt.Wait(t, running, patience)
	x.sendAll(zq.Message{ID: "b", Headers: head}, zq.Message{ID: "c", Headers: head})
	zqt.Eventually(t, patience, func() bool { return time.Since(began) > 3*ttl && outcome(idempotency.InProgress) > 10 },
		"the order is refused for three lifetimes of its mark")
	if r := x.record("o-1"); r.State != idempotency.StateRunning || runs.Load() != 1 {
		t.Errorf("%d runs, and the record %+v", runs.Load(), r)
	}
	close(goOn)
	x.over(3, 0)
	ran, skipped := outcome(idempotency.Ran), outcome(idempotency.Skipped)
	if ran != 1 || skipped != 2 || runs.Load() != 1 || x.counters().Failed != 0 {
		t.Errorf("%d runs, %d recorded, %d skips, counters %+v", runs.Load(), ran, skipped, x.counters())
	}
	if got := append(guests[0].attemptsOf("a"), guests[1].attemptsOf("a")...); len(got) != 1 {
		t.Errorf("the run has the spans %v", got)
	}
}

// B50 in the whole chain: a Redis user that may not touch the store of the idempotency layer, nor publish and
// subscribe, is refused with each message. That leaks no connection, charges nothing and is logged once; when the user
// is given the keys, everything is done.
func TestB50RefusedStoreLeaksNothing(t *testing.T) {
	t.Parallel()
	const messages, pool = 100, 4
	x := newTrialOn(t, zqt.Redis(t))
	acl := func(keys string) {
		x.must(x.rdb.Do(t.Context(), "acl", "setuser", "app", "on", ">pw", "+@all", "-@pubsub", "resetchannels", keys).Err())
	}
	acl("~" + x.key("*"))
	rdb := x.srv.Client(func(o *redis.Options) { o.Username, o.Password, o.PoolSize = "app", "pw", pool })
	nothing := func(context.Context, *zq.Delivery) error { return nil }
	g := x.host(rdb, nil, nil, []zqfx.QueueOption{zqfx.Concurrency(2)}, nothing)
	refused := func(times int, what string) {
		zqt.Eventually(t, patience, func() bool { return g.outcome(idempotency.Unavailable) >= times }, what)
	}
	for _, n := range numbers(0, messages) {
		x.send(zq.Message{ID: fmt.Sprint("m", n), Headers: map[string]string{headOrder: fmt.Sprint("order-", n)}})
	}
	refused(messages, "all are refused")
	before := x.clients("app")
	refused(3*messages, "all are refused, again and again")
	if after := x.clients("app"); after > before+3 { // the pools may grow a little
		t.Errorf("%d connections at first, %d in the end", before, after)
	}
	if n := g.logged("store is out of reach"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	acl("~*")
	x.over(messages, 0)
	if c, ran := x.counters(), g.outcome(idempotency.Ran); c.Failed != 0 || ran != messages {
		t.Errorf("counters %+v, %d runs are recorded", c, ran)
	}
	g.app.RequireStop()
	zqt.Eventually(t, patience, func() bool { return x.clients("app") <= pool }, "the application's own connections are closed")
}

// clients is how many connections a user has.
func (x *trial) clients(user string) (n int) {
	x.t.Helper()
	list, err := x.rdb.ClientList(x.t.Context()).Result()
	x.must(err)
	for line := range strings.Lines(list) {
		if strings.Contains(line, " user="+user+" ") {
			n++
		}
	}
	return n
}
