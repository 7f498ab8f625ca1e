package zqfx_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

func TestSenderSendsToAQueueOfAnotherService(t *testing.T) {
	t.Parallel()
	queue := zqtest.Queue(t)
	var s *zqfx.SenderOf[OrderPlaced]
	started(t, shared(t), zqfx.Module(zqfx.ProducerOnly()), zqfx.Sender(queue, Placed), fx.Populate(&s))
	r, err := s.Send(t.Context(), OrderPlaced{ID: "o-1"}, zq.WithID("o-1"), zq.WithKey("c-7"))
	if err != nil || r.ID != "o-1" || r.Duplicate {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, err = s.Send(t.Context(), OrderPlaced{ID: "o-1"}, zq.WithID("o-1")); err != nil || !r.Duplicate {
		t.Errorf("again: %+v, %v", r, err)
	}
	in, err := zq.NewInspector(zqtest.Shared(t).Client(), queue)
	if err != nil {
		t.Fatal(err)
	}
	m, err := in.Message(t.Context(), "o-1")
	if err != nil {
		t.Fatal(err)
	}
	v, err := Placed.Open(m.Message)
	if err != nil || v.ID != "o-1" || m.Message.Kind != "order.placed" || m.Message.Key != "c-7" {
		t.Errorf("in the queue: %+v (%v)", m.Message, err)
	}
}

func TestNamedSendersOfOnePayloadTypeGoToTheirQueues(t *testing.T) {
	t.Parallel()
	eu, us := zqtest.Queue(t), zqtest.Queue(t)
	var s struct {
		fx.In
		Plain *zqfx.SenderOf[OrderPlaced]
		EU    *zqfx.SenderOf[OrderPlaced] `name:"eu"`
		US    *zqfx.SenderOf[OrderPlaced] `name:"us"`
	}
	started(t, shared(t), zqfx.Module(zqfx.ProducerOnly()), zqfx.Sender(eu, Placed), zqfx.Sender(eu, Placed, zqfx.Named("eu")),
		zqfx.Sender(us, Placed, zqfx.Named("us")), fx.Populate(&s))
	for _, one := range []*zqfx.SenderOf[OrderPlaced]{s.Plain, s.EU, s.US} {
		if _, err := one.Send(t.Context(), OrderPlaced{}); err != nil {
			t.Fatal(err)
		}
	}
	rdb := zqtest.Shared(t).Client()
	if e, u := pending(t, rdb, eu), pending(t, rdb, us); e != 2 || u != 1 {
		t.Errorf("%d in one queue and %d in the other, want 2 and 1", e, u)
	}
}

// standIn keeps what is sent.
type standIn struct {
	sent []zq.Message
	err  error
}

func (s *standIn) Enqueue(_ context.Context, m zq.Message) (zq.Receipt, error) {
	s.sent = append(s.sent, m)
	return zq.Receipt{ID: m.ID}, s.err
}

func TestNewSenderWorksWithAStandIn(t *testing.T) {
	t.Parallel()
	var s standIn
	r, err := zqfx.NewSender(&s, Placed).Send(t.Context(), OrderPlaced{ID: "o-1"}, zq.WithID("m-1"))
	if err != nil || r.ID != "m-1" || len(s.sent) != 1 || string(s.sent[0].Body) != `{"id":"o-1"}` ||
		s.sent[0].Kind != "order.placed" {
		t.Errorf("%+v, %v, sent %+v", r, err, s.sent)
	}
	s.err = zq.ErrStoreFull
	if _, err := zqfx.NewSender(&s, Placed).Send(t.Context(), OrderPlaced{}); !errors.Is(err, zq.ErrStoreFull) {
		t.Errorf("error %v", err)
	}
}

// What is set for a queue's producers holds for each way to send, by code and by configuration.
func TestProducersHaveTheSettingsOfTheirQueue(t *testing.T) {
	t.Parallel()
	type config = zqfx.QueueConfig
	cases := map[string]struct {
		option zqfx.QueueOption
		config config
		holds  func(t *testing.T, s *zqfx.SenderOf[OrderPlaced], in *zq.Inspector)
	}{
		"MaxBody": {zqfx.MaxBody(20), config{MaxBody: 20}, func(t *testing.T, s *zqfx.SenderOf[OrderPlaced], _ *zq.Inspector) {
			if _, err := s.Send(t.Context(), OrderPlaced{ID: strings.Repeat("x", 20)}); !errors.Is(err, zq.ErrInvalid) {
				t.Errorf("a body of more than 20 bytes: %v", err)
			}
		}},
		"Strict": {zqfx.Strict(), config{Strict: true}, func(t *testing.T, s *zqfx.SenderOf[OrderPlaced], in *zq.Inspector) {
			if _, err := s.Send(t.Context(), OrderPlaced{}, zq.WithID("o-1")); err != nil {
				t.Fatal(err)
			}
			if m, err := in.Message(t.Context(), "o-1"); err != nil || m.Message.Key != zq.StrictKey {
				t.Errorf("key %q, %v", m.Message.Key, err)
			}
		}},
		"MinReplicas": {zqfx.MinReplicas(1, time.Millisecond), config{MinReplicas: 1, MinReplicasWithin: time.Millisecond},
			func(t *testing.T, s *zqfx.SenderOf[OrderPlaced], _ *zq.Inspector) {
				_, err := s.Send(t.Context(), OrderPlaced{})
				if _, ok := errors.AsType[*zq.ReplicationError](err); !ok {
					t.Errorf("without a replica: %v", err)
				}
			}},
	}
	for name, c := range cases {
		byConfig := func(queue string) fx.Option {
			return fx.Options(zqfx.Queue(queue),
				configured(func(all *zqfx.Config) { all.Queues = map[string]config{queue: c.config} }))
		}
		for how, declare := range map[string]func(string) fx.Option{
			"code": func(queue string) fx.Option { return zqfx.Queue(queue, c.option) }, "configuration": byConfig,
		} {
			t.Run(name+" by "+how, func(t *testing.T) {
				t.Parallel()
				queue := zqtest.Queue(t)
				var s *zqfx.SenderOf[OrderPlaced]
				var p *zqfx.Producers
				started(t, shared(t), declare(queue), zqfx.Module(zqfx.ProducerOnly()), zqfx.Sender(queue, Placed),
					fx.Populate(&s, &p))
				in, err := p.Inspector(queue)
				if err != nil {
					t.Fatal(err)
				}
				c.holds(t, s, in)
			})
		}
	}
}

// An id is remembered after its ack as long as the queue's window says.
func TestDedupeWindowOfAQueue(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		option  zqfx.QueueOption
		records int64
	}{
		"some": {zqfx.DedupeWindow(time.Hour), 1}, "none": {zqfx.DedupeWindow(0), 0},
		"none by name": {zqfx.DedupeWindow(zqfx.NoDedupe), 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queue := zqtest.Queue(t)
			var p *zqfx.Producers
			started(t, shared(t), plain(), zqfx.Module(), zqfx.Queue(queue, c.option),
				zqfx.HandleFunc(queue, Placed, nothing), fx.Populate(&p))
			in, err := p.Inspector(queue)
			if err != nil {
				t.Fatal(err)
			}
			send(t, p, queue, "o-1", zq.WithID("o-1"))
			zqtest.Eventually(t, limit, func() bool {
				d, err := in.Depth(t.Context())
				return err == nil && d.Unfinished() == 0
			}, "the ack")
			if d, err := in.Depth(t.Context()); err != nil || d.DedupeRecords != c.records {
				t.Errorf("%d records (%v), want %d", d.DedupeRecords, err, c.records)
			}
		})
	}
}

func TestProducersKnowTheDeclaredQueuesAlone(t *testing.T) {
	t.Parallel()
	var p *zqfx.Producers
	built(t, shared(t), zqfx.Module(), zqfx.Queue("b", zqfx.ProducerOnly()), zqfx.HandleFunc("c", Placed, nothing),
		zqfx.Sender("a", Placed), fx.Populate(&p))
	if got := p.Queues(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("queues %q", got)
	}
	one, err := p.For("a")
	if again, err2 := p.For("a"); err != nil || err2 != nil || again != one || one.Queue() != "a" {
		t.Errorf("%v %v: %p and then %p", err, err2, one, again)
	}
	_, err = p.For("d")
	_, err2 := p.Inspector("d")
	for _, err := range []error{err, err2} {
		if !errors.Is(err, zq.ErrInvalid) {
			t.Fatalf("error %v", err)
		}
		mentions(t, err.Error(), `"d"`, "a, b, c")
	}
}

func TestProducersEndWithTheApplication(t *testing.T) {
	t.Parallel()
	used, other := zqtest.Queue(t), zqtest.Queue(t)
	var p *zqfx.Producers
	app := fx.New(fx.NopLogger, shared(t), zqfx.Module(zqfx.ProducerOnly()), zqfx.Queue(used), zqfx.Queue(other),
		fx.Populate(&p))
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := app.Start(ctx); err != nil {
		t.Fatal(err)
	}
	send(t, p, used, "o-1")
	if err := app.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	one, err := p.For(used)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Placed.Send(ctx, one, OrderPlaced{}); !errors.Is(err, zq.ErrClosed) {
		t.Errorf("sent after the stop: %v", err)
	}
	if _, err := p.For(other); !errors.Is(err, zq.ErrClosed) {
		t.Errorf("a producer after the stop: %v", err)
	}
}
