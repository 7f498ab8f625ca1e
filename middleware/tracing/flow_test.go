package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// stage is a queue on a real server with a traced producer and consumers.
type stage struct {
	*kit
	rdb      *redis.Client
	queue    string
	producer *zq.Producer
}

func newStage(t *testing.T, rdb *redis.Client) *stage {
	t.Helper()
	k, queue := newKit(t), zqtest.Queue(t)
	p, err := zq.NewProducer(rdb, queue, zq.WithSendMiddleware(k.Send()))
	if err != nil {
		t.Fatal(err)
	}
	return &stage{kit: k, rdb: rdb, queue: queue, producer: p}
}

// work starts a consumer, and stops it with the test or by the function it gives.
func (s *stage) work(cfg zq.ConsumerConfig, h zq.HandlerFunc) (stop func()) {
	s.t.Helper()
	cfg.Observers = append(cfg.Observers, s.Observer())
	c, err := zq.NewConsumer(s.rdb, s.queue, zq.Chain{s.Middleware()}.Then(h), cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := c.Start(context.Background()); err != nil {
		s.t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		if err := c.Stop(context.Background()); err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(stop)
	return stop
}

// runs are the spans of runs of a message, in their order.
func (s *stage) runs(id string) []sdktrace.ReadOnlySpan {
	var found []sdktrace.ReadOnlySpan
	for _, span := range s.ended("process " + s.queue) {
		if attrs(span.Attributes())["messaging.message.id"] == id {
			found = append(found, span)
		}
	}
	return found
}

// awaitRuns waits until a message has had so many.
func (s *stage) awaitRuns(id string, n int) []sdktrace.ReadOnlySpan {
	s.t.Helper()
	zqtest.Eventually(s.t, limit, func() bool { return len(s.runs(id)) >= n }, fmt.Sprintf("%d runs of %s", n, id))
	return s.runs(id)
}

func (s *stage) enqueue(ctx context.Context, m zq.Message) {
	s.t.Helper()
	if _, err := s.producer.Enqueue(ctx, m); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) wantLinks(what string, span sdktrace.ReadOnlySpan, want map[string]string) {
	s.t.Helper()
	if diff := cmp.Diff(want, linked(span)); diff != "" {
		s.t.Errorf("%s: links (-want +got):\n%s", what, diff)
	}
}

// From the caller over the queue to a run that fails, the run after it, and the follow-up that this one sends with
// its ack: each is linked to where it comes from. No span has a body, a header or a claim's id in it.
func TestFlow(t *testing.T) {
	t.Parallel()
	s := newStage(t, zqtest.Shared(t).Client())
	ctx, caller := s.caller()
	s.enqueue(ctx, zq.Message{ID: "order", Body: []byte("secret-body"), Headers: map[string]string{"token": "secret-header"}})
	caller.End()
	stop := s.work(zq.ConsumerConfig{}, func(_ context.Context, d *zq.Delivery) error {
		switch {
		case d.ID == "order" && d.Attempt == 1:
			return zq.RetryAfter(time.Millisecond, errors.New("busy"))
		case d.ID == "order":
			return d.Then(zq.Message{ID: "invoice", Body: []byte("secret-body")})
		}
		return nil
	})
	invoice := s.awaitRuns("invoice", 1)[0]
	stop()
	order, sent := s.runs("order"), word(s.one("send "+s.queue).SpanContext())
	if len(order) != 2 {
		t.Fatalf("%d runs of the order", len(order))
	}
	s.wantLinks("first run", order[0], map[string]string{sent: "creation"})
	s.wantLinks("second run", order[1], map[string]string{sent: "creation", word(order[0].SpanContext()): "previous"})
	s.wantLinks("follow-up", invoice, map[string]string{word(order[1].SpanContext()): "creation"})
	if wait, there := attrs(order[0].Attributes())["messaging.zq.queue_wait_ms"].(int64); !there || wait < 0 {
		t.Errorf("first run: %v", order[0].Attributes())
	}
	if _, there := attrs(order[1].Attributes())["messaging.zq.queue_wait_ms"]; there {
		t.Errorf("second run: %v", order[1].Attributes())
	}
	claims, settled := map[string]string{}, map[string]string{}
	for _, span := range s.ended("receive " + s.queue) {
		for w := range linked(span) {
			claims[w] = ""
		}
	}
	for _, span := range s.ended("settle " + s.queue) {
		for w := range linked(span) {
			settled[w] = ""
		}
	}
	if diff := cmp.Diff(map[string]string{sent: "", word(order[1].SpanContext()): ""}, claims); diff != "" {
		t.Errorf("claims link to (-want +got):\n%s", diff)
	}
	want := map[string]string{word(order[0].SpanContext()): "", word(order[1].SpanContext()): "", word(invoice.SpanContext()): ""}
	if diff := cmp.Diff(want, settled); diff != "" {
		t.Errorf("settlements link to (-want +got):\n%s", diff)
	}
	for _, span := range s.recorder.Ended() {
		if text := fmt.Sprint(attrs(span.Attributes()), span.Events(), span.Links(), span.Status()); strings.Contains(text, "secret") {
			t.Errorf("%s tells: %s", span.Name(), text)
		}
	}
}

// A dead letter keeps the context of its last run, and the run after its replay links to that.
func TestFlowReplay(t *testing.T) {
	t.Parallel()
	s := newStage(t, zqtest.Shared(t).Client())
	s.enqueue(t.Context(), zq.Message{ID: "order"})
	s.work(zq.ConsumerConfig{}, func(_ context.Context, d *zq.Delivery) error {
		if d.Replays == 0 {
			return zq.Dead("bad_address", nil)
		}
		return nil
	})
	first := s.awaitRuns("order", 1)[0]
	i, err := zq.NewInspector(s.rdb, s.queue)
	if err != nil {
		t.Fatal(err)
	}
	zqtest.Eventually(t, limit, func() bool { return i.Replay(t.Context(), "order") == nil }, "the dead letter")
	second := s.awaitRuns("order", 2)[1]
	sent := word(s.one("send " + s.queue).SpanContext())
	s.wantLinks("after the replay", second, map[string]string{sent: "creation", word(first.SpanContext()): "previous"})
	if attrs(second.Attributes())["messaging.zq.replays"] != int64(1) {
		t.Errorf("after the replay: %v", second.Attributes())
	}
}

// A batch, a duplicate and a refusal, from a real producer.
func TestFlowSend(t *testing.T) {
	t.Parallel()
	s := newStage(t, zqtest.Shared(t).Client())
	s.enqueue(t.Context(), zq.Message{ID: "a"})
	if _, err := s.producer.Enqueue(t.Context(), zq.Message{Delay: -1}); !errors.Is(err, zq.ErrInvalid) {
		t.Fatalf("got %v", err)
	}
	refused := s.ended("send " + s.queue)[1]
	if refused.Status().Code != codes.Error || attrs(refused.Attributes())["error.type"] != "invalid" {
		t.Errorf("refused: %v, %v", refused.Status(), refused.Attributes())
	}
	results, err := s.producer.EnqueueBatch(t.Context(), []zq.Message{{ID: "a"}, {}})
	if err != nil {
		t.Fatal(err)
	}
	creates := s.ended("create " + s.queue)
	if len(creates) != 2 {
		t.Fatalf("%d create spans", len(creates))
	}
	if got := attrs(creates[0].Attributes()); got["messaging.zq.existing_id"] != "a" || creates[0].Status().Code != codes.Unset {
		t.Errorf("duplicate: %v, %v", creates[0].Status(), got)
	}
	if got := attrs(creates[1].Attributes())["messaging.message.id"]; got != results[1].ID {
		t.Errorf("made-up id %v, want %s", got, results[1].ID)
	}
	s.work(zq.ConsumerConfig{}, nothing)
	s.wantLinks("run", s.awaitRuns(results[1].ID, 1)[0], map[string]string{word(creates[1].SpanContext()): "creation"})
}

// What a shutdown cuts off is no failure.
func TestFlowShutdown(t *testing.T) {
	t.Parallel()
	s := newStage(t, zqtest.Shared(t).Client())
	s.enqueue(t.Context(), zq.Message{ID: "order"})
	started := make(chan struct{})
	stop := s.work(zq.ConsumerConfig{DrainTime: time.Millisecond}, func(ctx context.Context, _ *zq.Delivery) error {
		close(started)
		<-ctx.Done()
		return ctx.Err()
	})
	zqtest.Wait(t, started, limit)
	stop()
	span := s.runs("order")[0]
	if span.Status().Code != codes.Unset || len(span.Events()) != 1 || span.Events()[0].Name != "messaging.zq.released" {
		t.Errorf("status %v, events %v", span.Status(), span.Events())
	}
}

// A lease that is lost under a run is said on its span.
func TestFlowLeaseLost(t *testing.T) {
	t.Parallel()
	server := zqtest.Redis(t)
	proxy := zqtest.Proxy(t, server.Addr())
	s := newStage(t, server.Client(func(o *redis.Options) { o.Addr = proxy.Addr() }))
	s.enqueue(t.Context(), zq.Message{ID: "order"})
	started := make(chan struct{}, 10)
	s.work(zq.ConsumerConfig{Lease: 300 * time.Millisecond}, func(ctx context.Context, d *zq.Delivery) error {
		if d.Fence() == 0 || len(s.runs("order")) > 0 {
			return nil // the run after the loss
		}
		started <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	zqtest.Wait(t, started, limit)
	proxy.Cut()
	span := s.awaitRuns("order", 1)[0]
	proxy.Heal()
	if span.Status().Code != codes.Error || attrs(span.Attributes())["error.type"] != "lease_lost" ||
		len(span.Events()) != 1 || span.Events()[0].Name != "messaging.zq.lease_lost" {
		t.Errorf("status %v, %v, events %v", span.Status(), span.Attributes(), span.Events())
	}
}

// A consumer that finds nothing, or no Redis, makes no spans however often it tries.
func TestFlowNoiseless(t *testing.T) {
	t.Parallel()
	server := zqtest.Redis(t)
	proxy := zqtest.Proxy(t, server.Addr())
	s := newStage(t, server.Client(func(o *redis.Options) { o.Addr = proxy.Addr() }))
	tries := proxy.Count(zqtest.Command("EVALSHA"))
	failures := make(chan string, 1)
	stop := s.work(zq.ConsumerConfig{Lease: 300 * time.Millisecond, Observers: []zq.Observer{{
		Failed: func(call string, _ error) {
			select {
			case failures <- call:
			default:
			}
		},
	}}}, nothing)
	idle := tries.Commands()
	zqtest.Eventually(t, limit, func() bool { return tries.Commands() > idle+3 }, "an idle consumer's calls")
	proxy.Cut()
	for range 5 {
		zqtest.Wait(t, failures, limit)
	}
	proxy.Heal()
	stop()
	if all := s.recorder.Started(); len(all) != 0 {
		t.Errorf("%d spans of nothing, such as %s", len(all), all[0].Name())
	}
}
