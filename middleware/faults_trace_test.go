package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/zqueue/zqueue/middleware"
	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/middleware/retry"
	"github.com/zqueue/zqueue/middleware/tracing"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// watched is a queue in the standard chain, with all that the chain tells: spans, metrics and lines of log.
type watched struct {
	t        *testing.T
	rdb      *redis.Client
	queue    string
	stack    middleware.Stack
	producer *zq.Producer
	spans    *tracetest.SpanRecorder
	tracer   trace.Tracer
	reader   *sdkmetric.ManualReader
	lines    atomic.Int64
}

func newWatched(t *testing.T, rdb *redis.Client, layers ...middleware.Layer) *watched {
	t.Helper()
	w := &watched{
		t: t, rdb: rdb, queue: zqtest.Queue(t), spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader(),
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(w.spans))
	w.tracer = provider.Tracer("test")
	inspector, err := zq.NewInspector(rdb, w.queue)
	w.must(err)
	soon := retry.Backoff(retry.Curve{Initial: time.Millisecond, Max: time.Millisecond})
	w.stack, err = middleware.Standard(append([]middleware.Layer{middleware.Retry(soon)}, layers...)...).Build(middleware.Env{
		Queue: w.queue, Redis: rdb, Inspector: inspector, TracerProvider: provider, Logger: w.log(),
		MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.reader)),
	})
	w.must(err)
	t.Cleanup(func() { _ = w.stack.Close(context.Background()) })
	w.producer, err = zq.NewProducer(rdb, w.queue, zq.WithSendMiddleware(w.stack.Send...))
	w.must(err)
	return w
}

func (w *watched) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// log counts lines.
func (w *watched) log() *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// Write is a line.
func (w *watched) Write(b []byte) (int, error) {
	w.lines.Add(1)
	return len(b), nil
}

// start runs a consumer until stop, under a span that is active when it starts.
func (w *watched) start(concurrency int, h zq.HandlerFunc) (stop func()) {
	w.t.Helper()
	ctx, span := w.tracer.Start(w.t.Context(), "startup")
	defer span.End()
	c, err := zq.NewConsumer(w.rdb, w.queue, w.stack.Chain.Then(h), zq.ConsumerConfig{
		Concurrency: concurrency, Observers: w.stack.Observers, Logger: w.log(), MaxAttempts: 2,
	})
	w.must(err)
	w.must(c.Start(ctx))
	w.t.Cleanup(func() { _ = c.Stop(context.Background()) })
	return func() {
		w.t.Helper()
		w.must(c.Stop(context.Background()))
	}
}

func (w *watched) send(msgs ...zq.Message) {
	w.t.Helper()
	for _, m := range msgs {
		_, err := w.producer.Enqueue(w.t.Context(), m)
		w.must(err)
	}
}

// runs are the ended process spans.
func (w *watched) runs() []sdktrace.ReadOnlySpan {
	var all []sdktrace.ReadOnlySpan
	for _, s := range w.spans.Ended() {
		if s.Name() == "process "+w.queue {
			all = append(all, s)
		}
	}
	return all
}

// traces counts all spans by trace.
func (w *watched) traces() map[trace.TraceID]int {
	n := map[trace.TraceID]int{}
	for _, s := range w.spans.Ended() {
		n[s.SpanContext().TraceID()]++
	}
	return n
}

func idOf(s sdktrace.ReadOnlySpan) string {
	for _, a := range s.Attributes() {
		if a.Key == attribute.Key("messaging.message.id") {
			return a.Value.AsString()
		}
	}
	return ""
}

// B57: a run that fails, panics, dies or is put off leaves no span active. On the one goroutine that runs them all,
// the unrelated job after each of them is in a trace of its own, or in its sender's if that is asked for.
func TestB57FailedRunLeavesNoSpanActive(t *testing.T) {
	t.Parallel()
	bad := []string{"fails", "panics", "dies", "postponed", "layer panics", "leaves a span open"}
	for name, child := range map[string]bool{"root": false, "child": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var opts []tracing.Option
			if child {
				opts = append(opts, tracing.AsChild())
			}
			layer := func(next zq.Handler) zq.Handler {
				return zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
					if d.ID == "layer panics" && d.Attempt == 1 {
						panic("layer")
					}
					return next.Handle(ctx, d)
				})
			}
			w := newWatched(t, zqtest.Shared(t).Client(), middleware.Tracing(opts...), middleware.Idempotency(idempotency.FromID()),
				middleware.User("angry", layer).Before(middleware.RoleRetry))
			done := make(chan string, 100)
			postponed := false
			stop := w.start(1, func(ctx context.Context, d *zq.Delivery) error {
				switch {
				case d.ID == "dies":
					done <- d.ID
					return zq.Dead("why", nil)
				case d.ID == "postponed" && !postponed:
					postponed = true
					return zq.Postpone(time.Millisecond)
				case d.ID == "panics" && d.Attempt == 1:
					panic("handler")
				case d.ID == "leaves a span open":
					_, _ = w.tracer.Start(ctx, "open") //nolint:spancheck // that is the fault
				case d.ID == "fails" && d.Attempt == 1:
					return errors.New("not yet")
				}
				done <- d.ID
				return nil
			})
			for i, id := range bad {
				for _, id := range []string{id, fmt.Sprint("unrelated-", i)} {
					w.send(zq.Message{ID: id})
					if got := zqtest.Wait(t, done, limit); got != id {
						t.Errorf("%q is done, want %q", got, id)
					}
				}
			}
			stop()
			w.wantOwnTraces(child, 2*len(bad)+4)
		})
	}
}

// wantOwnTraces expects that the runs of no two messages share a trace.
func (w *watched) wantOwnTraces(child bool, runs int) {
	w.t.Helper()
	sent, owner := map[string]trace.SpanContext{}, map[trace.TraceID]string{}
	for _, s := range w.spans.Ended() {
		if s.Name() == "startup" {
			owner[s.SpanContext().TraceID()] = "the start of the consumer"
		}
		if s.SpanKind() == trace.SpanKindProducer {
			sent[idOf(s)] = s.SpanContext()
		}
	}
	all := w.runs()
	if len(all) != runs {
		w.t.Errorf("%d spans of runs, want %d", len(all), runs)
	}
	for _, s := range all {
		id, tid := idOf(s), s.SpanContext().TraceID()
		if other := owner[tid]; other != "" && (!child || other != id) {
			w.t.Errorf("a run of %q is in the trace of %s", id, other)
		}
		owner[tid] = id
		switch from := sent[id]; {
		case child && (tid != from.TraceID() || s.Parent().SpanID() != from.SpanID()):
			w.t.Errorf("a run of %q is no child of what sent it", id)
		case !child && s.Parent().IsValid():
			w.t.Errorf("a run of %q has a parent", id)
		}
	}
}

// B58: a job that schedules itself a thousand times, by its ack, by sending itself or by being put off, makes a
// thousand short traces with a link or two each; what it carries along does not grow either.
func TestB58RescheduledJobMakesShortTraces(t *testing.T) {
	t.Parallel()
	const rounds = 1000
	again := func(round int) zq.Message { return zq.Message{ID: fmt.Sprint("job-", round)} }
	for name, next := range map[string]func(w *watched, ctx context.Context, d *zq.Delivery, round int) error{
		"follow-up": func(_ *watched, _ context.Context, d *zq.Delivery, round int) error { return d.Then(again(round)) },
		"sent": func(w *watched, ctx context.Context, _ *zq.Delivery, round int) error {
			member, err := baggage.NewMember(fmt.Sprint("round-", round), strings.Repeat("x", 50))
			if err != nil {
				return err
			}
			bag, err := baggage.FromContext(ctx).SetMember(member)
			if err != nil {
				return err
			}
			_, err = w.producer.Enqueue(baggage.ContextWithBaggage(ctx, bag), again(round))
			return err
		},
		"put off": func(*watched, context.Context, *zq.Delivery, int) error { return zq.Postpone(time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWatched(t, zqtest.Shared(t).Client())
			done := make(chan struct{})
			round := 0 // of the one message that there is
			stop := w.start(2, func(ctx context.Context, d *zq.Delivery) error {
				round++
				size := 0
				for name, value := range d.Headers {
					size += len(name) + len(value)
				}
				if len(d.Headers) > 3 || size > tracing.DefaultBaggage+200 {
					t.Errorf("round %d has %d headers of %d bytes", round, len(d.Headers), size)
				}
				if round == rounds {
					close(done)
					return nil
				}
				return next(w, ctx, d, round)
			})
			w.send(again(0))
			zqtest.Wait(t, done, 2*limit)
			stop()
			w.wantShort(rounds)
		})
	}
}

// wantShort expects so many runs, with no more than a run and what that sent in a trace, and two links of a run.
func (w *watched) wantShort(rounds int) {
	w.t.Helper()
	all := w.runs()
	if len(all) != rounds {
		w.t.Errorf("%d spans of runs, want %d", len(all), rounds)
	}
	for i, s := range all {
		if n := len(s.Links()); n < 1 || n > 2 {
			w.t.Fatalf("run %d has %d links", i, n)
		}
	}
	for id, n := range w.traces() {
		if n > 2 {
			w.t.Fatalf("trace %s has %d spans", id, n)
		}
	}
	if started, ended := len(w.spans.Started()), len(w.spans.Ended()); started != ended {
		w.t.Errorf("%d spans started, %d ended", started, ended)
	}
}

// textual is an error with an id in its text.
type textual string

func (e textual) Error() string { return "no such customer: " + string(e) }

// B59: a hundred thousand ids, keys, headers, errors and reasons of dead letters make no more series than the first
// two thousand did: ten thousand through the queue, and the rest through the chain and the producer's middleware.
func TestB59SeriesDoNotGrowWithIDs(t *testing.T) {
	t.Parallel()
	const first, queued, all = 2000, 10_000, 100_000
	unkept := middleware.Tracing(tracing.WithTracerProvider(sdktrace.NewTracerProvider())) // of so many spans
	w := newWatched(t, zqtest.Shared(t).Client(), unkept)
	ran := make(chan struct{}, queued)
	handler := zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		n, err := strconv.Atoi(strings.TrimPrefix(d.ID, "id-"))
		if err != nil {
			return err
		}
		if last := n%10 != 9 || d.Attempt == 2; last && n < queued {
			ran <- struct{}{}
		}
		switch n % 10 {
		case 7:
			return zq.Dead("reason-"+d.ID, textual(d.ID))
		case 8:
			return zq.Dead("bad", fmt.Errorf("%s: %w", d.ID, textual(d.ID)))
		case 9:
			return textual(d.ID) // twice, and dead
		}
		return nil
	})
	w.start(50, handler)
	feed := func(from, to int) int {
		for n := from; n < to; n += 1000 {
			batch := make([]zq.Message, 1000)
			for i := range batch {
				id := fmt.Sprint("id-", n+i)
				batch[i] = zq.Message{ID: id, Key: "key-" + id, Headers: map[string]string{"header-" + id: id}}
			}
			_, err := w.producer.EnqueueBatch(t.Context(), batch)
			w.must(err)
		}
		for range to - from {
			zqtest.Wait(t, ran, limit)
		}
		return w.series("")
	}
	few := feed(0, first)
	many := feed(first, queued)
	chain := w.stack.Chain.Then(handler)
	for n := queued; n < all; n++ {
		w.direct(chain, fmt.Sprint("id-", n))
	}
	// A call's or an outcome's first time may come late.
	if most := w.series(""); many > few+20 || most > few+20 || most > 200 {
		t.Errorf("%d series after %d ids, %d after %d, %d after %d", few, first, many, queued, most, all)
	}
	if n := w.series("reason-id-"); n < 40 || n > 50 { // words from outside are bounded
		t.Errorf("%d series name a reason", n)
	}
	if n := w.series("id-") - w.series("reason-id-"); n != 0 {
		t.Errorf("%d series name an id", n)
	}
}

// direct lets a message go through the chain and all that stands beside it, without Redis.
func (w *watched) direct(chain zq.Handler, id string) {
	out := &zq.Outgoing{Queue: w.queue, Messages: []zq.Message{{ID: id, Key: "key-" + id}}}
	send := func(context.Context, *zq.Outgoing) ([]zq.Result, error) {
		return []zq.Result{{Err: textual(id)}}, textual(id)
	}
	for _, mw := range w.stack.Send {
		send = mw(send)
	}
	_, _ = send(w.t.Context(), out) // the error is the made-up one
	d := &zq.Delivery{Queue: w.queue, ID: id, Key: "key-" + id, Headers: out.Messages[0].Headers, Attempt: 2, MaxAttempts: 2}
	err := chain.Handle(w.t.Context(), d)
	v := zq.Explain(err)
	for _, o := range w.stack.Observers {
		if o.Decided != nil {
			o.Decided(d, zq.Decision{Action: v.Action, Reason: v.Reason, Err: err, Ran: time.Millisecond})
		}
		if o.Failed != nil {
			o.Failed("claim", textual(id))
		}
	}
}

// series counts the series whose attributes have the text in them; all for none.
func (w *watched) series(text string) (n int) {
	w.t.Helper()
	for _, m := range w.collect() {
		for _, set := range setsOf(m.Data) {
			if strings.Contains(set.Encoded(attribute.DefaultEncoder()), text) {
				n++
			}
		}
	}
	return n
}

func (w *watched) collect() []metricdata.Metrics {
	w.t.Helper()
	var got metricdata.ResourceMetrics
	w.must(w.reader.Collect(w.t.Context(), &got))
	var all []metricdata.Metrics
	for _, scope := range got.ScopeMetrics {
		all = append(all, scope.Metrics...)
	}
	return all
}

// setsOf are the attributes of a metric's series.
func setsOf(data metricdata.Aggregation) (sets []attribute.Set) {
	switch data := data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			sets = append(sets, p.Attributes)
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			sets = append(sets, p.Attributes)
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			sets = append(sets, p.Attributes)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			sets = append(sets, p.Attributes)
		}
	}
	return sets
}

// B60: an idle queue makes no noise. A hundred claims that find nothing, and waits of a dozen consumers that end with
// nothing, are no spans, no failures, no measured calls and no lines of log. What then comes is seen.
func TestB60IdleQueueIsSilent(t *testing.T) {
	t.Parallel()
	const consumers = 12
	w := newWatched(t, zqtest.Redis(t).Client(), middleware.Idempotency(idempotency.FromID()))
	for range consumers {
		w.start(1, func(context.Context, *zq.Delivery) error { return nil })
	}
	startup := len(w.spans.Started())
	wake := strings.TrimSuffix(zq.EffectKey(w.queue, ""), "x:") + "wake"
	for range 100 {
		w.must(w.rdb.ZAdd(t.Context(), wake, redis.Z{Member: "w"}).Err())
		zqtest.Eventually(t, limit, func() bool {
			n, err := w.rdb.Exists(t.Context(), wake).Result()
			return err == nil && n == 0
		}, "the marker that wakes for nothing is taken")
	}
	zqtest.Eventually(t, limit, func() bool { return len(w.blocked()) == consumers }, "all wait again")
	for _, id := range w.blocked()[1:] { // as the time-out of a wait does: with a nil reply
		if n, err := w.rdb.ClientUnblock(t.Context(), id).Result(); err != nil || n != 1 {
			t.Errorf("unblocked %d, %v", n, err)
		}
	}
	zqtest.Eventually(t, limit, func() bool { return len(w.blocked()) < consumers }, "waits have ended")
	if n := len(w.spans.Started()) - startup; n != 0 {
		t.Errorf("%d spans of nothing", n)
	}
	if n := w.lines.Load(); n != 0 {
		t.Errorf("%d lines of log", n)
	}
	for _, m := range w.collect() {
		if !strings.HasPrefix(m.Name, "messaging.zq.queue.") { // the gauges
			t.Errorf("%s has %d series", m.Name, len(setsOf(m.Data)))
		}
	}
	w.send(zq.Message{ID: "a"})
	zqtest.Eventually(t, limit, func() bool { return len(w.runs()) == 1 && w.lines.Load() == 1 }, "a message is seen")
	if w.series("process") == 0 {
		t.Error("a run is not counted")
	}
}

// blocked are the clients that wait for a marker.
func (w *watched) blocked() (ids []int64) {
	w.t.Helper()
	list, err := w.rdb.ClientList(w.t.Context()).Result()
	w.must(err)
	for line := range strings.Lines(list) {
		if !strings.Contains(line, " cmd=bzpopmin ") || !strings.Contains(line, " flags=b ") {
			continue
		}
		var id int64
		if _, err := fmt.Sscanf(line, "id=%d", &id); err != nil {
			w.t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}
