package zqfx_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/fx"

	"github.com/zqueue/zqueue/middleware"
	"github.com/zqueue/zqueue/middleware/metrics"
	"github.com/zqueue/zqueue/middleware/tracing"
	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

func TestChainOfAQueueTakesThePlaceOfTheInstances(t *testing.T) {
	t.Parallel()
	own, other := zqtest.Queue(t), zqtest.Queue(t)
	ran := make(chan string, 4)
	says := func(word string) zqfx.Builder { return middlewareOf(func(*zq.Delivery) { ran <- word }) }
	var p *zqfx.Producers
	started(t, shared(t), zqfx.Module(), zqfx.HandleFunc(own, Placed, nothing), zqfx.HandleFunc(other, Placed, nothing),
		zqfx.Chain(says("its own"), zqfx.ForQueue(own)), zqfx.Chain(says("the common one")), fx.Populate(&p))
	send(t, p, own, "o-1")
	want(t, ran, "its own")
	send(t, p, other, "o-2")
	want(t, ran, "the common one")
}

// recorder is a chain that keeps what it is built with and tells of its end.
type recorder struct {
	mu     sync.Mutex
	envs   []middleware.Env
	closed []string
	close  func(queue string) error
	fail   map[string]error
}

func (r *recorder) Build(env middleware.Env) (middleware.Stack, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.envs = append(r.envs, env)
	return middleware.Stack{Names: []string{"recorder"}, Close: func(context.Context) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.closed = append(r.closed, env.Queue)
		if r.close == nil {
			return nil
		}
		return r.close(env.Queue)
	}}, r.fail[env.Queue]
}

func TestChainIsBuiltOnceForEachQueueWithWhatTheGraphHas(t *testing.T) {
	t.Parallel()
	var r recorder
	rdb, log := zqtest.Shared(t).Client(), slog.New(slog.DiscardHandler)
	tracer, meter := sdktrace.NewTracerProvider(), sdkmetric.NewMeterProvider()
	var p *zqfx.Producers
	built(t, client(rdb), fx.Supply(log), fx.Supply(fx.Annotate(tracer, fx.As(new(trace.TracerProvider)))),
		fx.Supply(fx.Annotate(meter, fx.As(new(metric.MeterProvider)))), zqfx.Module(), zqfx.Chain(&r),
		zqfx.HandleFunc("orders", Placed, nothing), zqfx.Sender("mail", Placed), fx.Populate(&p))
	var queues []string
	for _, env := range r.envs {
		queues = append(queues, env.Queue)
		in, err := p.Inspector(env.Queue)
		if err != nil {
			t.Fatal(err)
		}
		if env.Redis != redis.UniversalClient(rdb) || env.Logger != log || env.Inspector != in ||
			env.TracerProvider != trace.TracerProvider(tracer) || env.MeterProvider != metric.MeterProvider(meter) {
			t.Errorf("queue %s is built with %+v", env.Queue, env)
		}
	}
	if !slices.Equal(queues, []string{"mail", "orders"}) {
		t.Errorf("built for %q", queues)
	}
}

// Whatever one chain's end does, the others are ended, the error says whose it was, and other hooks run.
func TestB49ChainsEndOnceEvenIfTheEndOfOnePanics(t *testing.T) {
	t.Parallel()
	a, b, c := zqtest.Queue(t), zqtest.Queue(t), zqtest.Queue(t)
	r := recorder{close: func(queue string) error {
		switch queue {
		case a:
			panic("a's end")
		case b:
			return errors.New("b's end")
		}
		return nil
	}}
	var order []string
	app := fx.New(fx.NopLogger, shared(t), zqfx.Chain(&r), fx.Invoke(func(lc fx.Lifecycle) {
		lc.Append(fx.StopHook(func() { order = append(order, "other hook") }))
	}), zqfx.Module(),
		zqfx.HandleFunc(a, Placed, nothing), zqfx.HandleFunc(b, Placed, nothing), zqfx.HandleFunc(c, Placed, nothing))
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := app.Start(ctx); err != nil {
		t.Fatal(err)
	}
	err := app.Stop(ctx)
	if err == nil {
		t.Fatal("no error from the stop")
	}
	mentions(t, err.Error(), a, "a's end", b, "b's end")
	slices.Sort(r.closed)
	if all := slices.Sorted(slices.Values([]string{a, b, c})); !slices.Equal(r.closed, all) {
		t.Errorf("ended %q, want each once", r.closed)
	}
	if len(order) != 1 {
		t.Errorf("other hooks that ran: %q", order)
	}
}

func TestChainsThatWereBuiltEndWhenAnotherIsNot(t *testing.T) {
	t.Parallel()
	r := recorder{fail: map[string]error{"b": errors.New("no bricks")}}
	got := failed(t, shared(t), zqfx.Module(), zqfx.Chain(&r),
		zqfx.HandleFunc("a", Placed, nothing), zqfx.HandleFunc("b", Placed, nothing),
		zqfx.HandleFunc("c", Placed, nothing))
	mentions(t, got, `queue "b"`, "no bricks", "chain_test.go:")
	slices.Sort(r.closed)
	if !slices.Equal(r.closed, []string{"a", "c"}) {
		t.Errorf("ended %q, want a and c", r.closed)
	}
}

// Without any middleware the core's own rules hold: a failure is tried again after RetryDelay.
func TestEmptyChainLeavesTheCoresRules(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]zqfx.Builder{
		"nil": zqfx.PlainChain(nil), "empty": zqfx.PlainChain(zq.Chain{}), "ordered": middleware.Ordered(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queue := zqtest.Queue(t)
			attempts := make(chan int, 2)
			var p *zqfx.Producers
			started(t, shared(t), zqfx.Chain(b), zqfx.Module(), fx.Populate(&p),
				zqfx.HandleFunc(queue, Placed, func(_ context.Context, d *zq.Delivery, _ OrderPlaced) error {
					attempts <- d.Attempt
					if d.Attempt == 1 {
						return zq.RetryAfter(0, errors.New("at first"))
					}
					return nil
				}))
			send(t, p, queue, "o-1")
			if one, two := zqtest.Wait(t, attempts, limit), zqtest.Wait(t, attempts, limit); one != 1 || two != 2 {
				t.Errorf("attempts %d and %d", one, two)
			}
		})
	}
}

// telemetry is a pair of providers whose output is kept.
type telemetry struct {
	spans  *tracetest.SpanRecorder
	tracer trace.TracerProvider
	reader *sdkmetric.ManualReader
	meter  metric.MeterProvider
}

func newTelemetry() *telemetry {
	k := &telemetry{spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	k.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(k.spans))
	k.meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(k.reader))
	return k
}

// inGraph provides both as the application does.
func (k *telemetry) inGraph() fx.Option {
	return fx.Provide(func() (trace.TracerProvider, metric.MeterProvider) { return k.tracer, k.meter })
}

// heard tells whether there is a span of a send and one of a run, and a measurement.
func (k *telemetry) heard(t *testing.T) bool {
	t.Helper()
	kinds := map[trace.SpanKind]bool{}
	for _, s := range k.spans.Ended() {
		kinds[s.SpanKind()] = true
	}
	var rm metricdata.ResourceMetrics
	if err := k.reader.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	measured := len(rm.ScopeMetrics) > 0
	if spans := kinds[trace.SpanKindProducer] && kinds[trace.SpanKindConsumer]; spans != measured {
		t.Errorf("spans: %v, measurements: %t", kinds, measured)
	}
	return measured
}

func TestTelemetryGoesToTheGraphsProviderOrTheGlobalOneAndAnOptionWins(t *testing.T) {
	cases := map[string]struct {
		inGraph, option           bool
		graphs, globals, byOption bool
	}{
		"global":              {globals: true},
		"graph":               {inGraph: true, graphs: true},
		"option":              {option: true, byOption: true},
		"option over graph's": {option: true, inGraph: true, byOption: true},
	}
	tracerBefore, meterBefore := otel.GetTracerProvider(), otel.GetMeterProvider()
	t.Cleanup(func() {
		otel.SetTracerProvider(tracerBefore)
		otel.SetMeterProvider(meterBefore)
	})
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			graph, global, option := newTelemetry(), newTelemetry(), newTelemetry()
			otel.SetTracerProvider(global.tracer)
			otel.SetMeterProvider(global.meter)
			queue := zqtest.Queue(t)
			run, ran := reporting()
			var p *zqfx.Producers
			opts := []fx.Option{shared(t), zqfx.Module(), zqfx.HandleFunc(queue, Placed, run), fx.Populate(&p)}
			if c.inGraph {
				opts = append(opts, graph.inGraph())
			}
			if c.option {
				opts = append(opts, zqfx.Chain(middleware.Standard(
					middleware.Tracing(tracing.WithTracerProvider(option.tracer)),
					middleware.Metrics(metrics.WithMeterProvider(option.meter)))))
			}
			app := fx.New(append(opts, fx.NopLogger)...)
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			if err := app.Start(ctx); err != nil {
				t.Fatal(err)
			}
			send(t, p, queue, "o-1")
			want(t, ran, "o-1")
			if err := app.Stop(ctx); err != nil { // so that the run's span has ended
				t.Fatal(err)
			}
			if g, o, opt := graph.heard(t), global.heard(t), option.heard(t); g != c.graphs || o != c.globals || opt != c.byOption {
				t.Errorf("graph's provider heard: %t, global: %t, option's: %t", g, o, opt)
			}
		})
	}
}

// A queue that sends and consumes has one chain: its spans and its runs go to one place, also through a Sender.
func TestSendersGoThroughTheChainOfTheirQueue(t *testing.T) {
	t.Parallel()
	queue, kit := zqtest.Queue(t), newTelemetry()
	var s *zqfx.SenderOf[OrderPlaced]
	started(t, shared(t), kit.inGraph(), zqfx.Module(zqfx.ProducerOnly()), zqfx.Sender(queue, Placed), fx.Populate(&s))
	if _, err := s.Send(t.Context(), OrderPlaced{}); err != nil {
		t.Fatal(err)
	}
	ended := kit.spans.Ended()
	if len(ended) != 1 || ended[0].Name() != "send "+queue {
		t.Errorf("spans %v", ended)
	}
}
