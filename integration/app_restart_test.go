package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// What is sent to the application.
const (
	appMessages = 10_000
	appKeys     = 500
	appHolds    = 8    // orders that are being worked on when the first process ends
	appFirst    = 7000 // messages that are sent while the first process runs
	appBetween  = 9000 // and up to here before the second one does
)

// An application with the whole chain works off 10,000 messages of 500 keys, of which a third fails once or more. In
// the middle it is stopped, or killed, and started again. Nothing is lost, each key's order holds, each order is paid
// for once in the eyes of the idempotency store, and each attempt has one span.
func TestAppKeepsItsPromisesOverARestart(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]bool{"SIGTERM": false, "SIGKILL": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAppTrial(t)
			lease := 30 * time.Second
			if kill {
				lease = 5 * time.Second
			}
			first := a.launch(appSpec{Name: "first", Lease: lease, Holds: true})
			a.halfway(first)
			if kill {
				a.kill(first)
			} else {
				a.terminate(first)
				a.nothingRuns()
			}
			second := a.launch(appSpec{Name: "second", Lease: lease})
			second.Expect("up", patience)
			a.rest.open()
			a.allSent()
			a.drained()
			a.terminate(second)
			a.nothingRuns()
			a.judge()
		})
	}
}

// appTrial is a trial of the application.
type appTrial struct {
	*trial
	chronicle
	send         *zq.Producer
	spans        *tracetest.SpanRecorder
	middle, rest *gateway
	produced     chan error
}

// gateway holds back who sends, until it is opened.
type gateway struct {
	ch   chan struct{}
	once sync.Once
}

func newGateway() *gateway { return &gateway{ch: make(chan struct{})} }

func (g *gateway) open() { g.once.Do(func() { close(g.ch) }) }

func newAppTrial(t *testing.T) *appTrial {
	t.Helper()
	x := newTrial(t)
	a := &appTrial{
		trial: x, chronicle: chronicle{queue: x.queue, seed: uint64(x.dice.below(1 << 30))}, spans: tracetest.NewSpanRecorder(),
		middle: newGateway(), rest: newGateway(), produced: make(chan error, 1),
	}
	a.sender()
	go func() { a.produced <- a.produceAll() }() // ends with the last message, or the test
	return a
}

// sender makes the application's other end: the same declarations, in a process that only produces.
func (a *appTrial) sender() {
	a.t.Helper()
	var producers *zqfx.Producers
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(a.spans))
	app := fxtest.New(a.t, fx.NopLogger,
		fx.Supply(a.rdb, fx.Annotate(provider, fx.As(new(trace.TracerProvider)))),
		zqfx.Module(zqfx.ProducerOnly()),
		zqfx.Queue(a.trial.queue, zqfx.Ordered()),
		zqfx.Chain(appPlan(&diary{})),
		fx.Populate(&producers))
	app.RequireStart()
	a.t.Cleanup(func() { app.RequireStop() })
	var err error
	a.send, err = producers.For(a.trial.queue)
	a.must(err)
}

// produceAll sends everything, in batches and alone, and waits at the gates. It runs on a goroutine of its own.
func (a *appTrial) produceAll() error {
	ctx := a.t.Context()
	gates := map[int]*gateway{appFirst: a.middle, appBetween: a.rest}
	for n := 0; n < appMessages; {
		if gate := gates[n]; gate != nil {
			select {
			case <-gate.ch:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		size := a.dice.between(1, 100)
		for end := range gates {
			if n < end {
				size = min(size, end-n)
			}
		}
		size = min(size, appMessages-n)
		if err := a.produce(ctx, n, size); err != nil {
			return err
		}
		n += size
	}
	return nil
}

// produce sends the messages from n on.
func (a *appTrial) produce(ctx context.Context, n, size int) error {
	orders, msgs := make([]sentOrder, size), make([]zq.Message, size)
	for i := range size {
		o := order{Number: n + i, Hold: n+i < appHolds}
		key := (n + i) % appKeys
		if n+i >= 2*appKeys && a.dice.percent(3) { // the order of an earlier message of the key, once more
			o.Number -= appKeys * a.dice.between(1, (n+i)/appKeys-1)
		}
		orders[i] = sentOrder{ID: fmt.Sprintf("m-%05d", n+i), Key: fmt.Sprintf("customer-%03d", key), Order: o.Number}
		var err error
		if msgs[i], err = orderPlaced.Message(o, zq.WithID(orders[i].ID), zq.WithKey(orders[i].Key)); err != nil {
			return err
		}
	}
	results := make([]zq.Result, 1)
	var err error
	if size > 1 {
		results, err = a.send.EnqueueBatch(ctx, msgs)
	} else {
		results[0].Receipt, err = a.send.Enqueue(ctx, msgs[0])
	}
	if err != nil {
		return err
	}
	for i, r := range results {
		if r.Err != nil || r.Duplicate {
			return fmt.Errorf("%s: %+v", orders[i].ID, r)
		}
		orders[i].Seq, orders[i].At = r.Sequence, time.Now()
	}
	a.sent = append(a.sent, orders...)
	return nil
}

// allSent waits until everything is confirmed.
func (a *appTrial) allSent() {
	a.t.Helper()
	a.must(zqt.Wait(a.t, a.produced, patience))
}

// launch starts a process of the application.
func (a *appTrial) launch(s appSpec) *zqt.Process {
	a.t.Helper()
	s.Addr, s.Queue, s.Seed = a.srv.Addr(), a.trial.queue, a.seed
	text, err := json.Marshal(s)
	a.must(err)
	return zqt.Child(a.t, appChild, "ZQ_APP="+string(text))
}

// halfway waits until four in ten messages are done, and the held ones are being worked on. That may be so before the
// process says that it is up.
func (a *appTrial) halfway(p *zqt.Process) {
	a.t.Helper()
	for range appHolds {
		p.Expect("holding", patience)
	}
	var done int64
	if !eventually(patience, func() bool { done = a.counters().Acked; return done >= appMessages*4/10 }) {
		a.t.Fatalf("only %d are done", done)
	}
}

// terminate asks a process to stop while more is sent, and expects that it does so in good order and in time.
func (a *appTrial) terminate(p *zqt.Process) {
	a.t.Helper()
	p.Terminate()
	a.middle.open()
	if code := p.Wait(fx.DefaultTimeout); code != 0 {
		a.t.Fatalf("the application ended with code %d", code)
	}
	a.entries = append(a.entries, entriesIn(p.Output())...)
}

func (a *appTrial) kill(p *zqt.Process) {
	a.t.Helper()
	p.Kill()
	a.victim, a.victimAt = "first", time.Now()
	a.middle.open()
	a.entries = append(a.entries, entriesIn(p.Output())...)
	if d := a.depth(); d.Running < appHolds {
		a.t.Errorf("this is no trial: it was killed with %d at work", d.Running)
	}
}

// nothingRuns expects that who stopped has given everything back.
func (a *appTrial) nothingRuns() {
	a.t.Helper()
	if d := a.depth(); d.Running+d.Claims+d.KeysHeld+d.Suspect != 0 {
		a.t.Errorf("after the stop: %+v", d)
	}
}

// judge collects what is in Redis at the end, and checks everything.
func (a *appTrial) judge() {
	a.t.Helper()
	created := map[string]string{}
	for _, s := range a.spans.Ended() {
		for _, at := range s.Attributes() {
			if s.SpanKind() == trace.SpanKindProducer && at.Key == attribute.Key("messaging.message.id") {
				created[at.Value.AsString()] = s.SpanContext().SpanID().String()
			}
		}
	}
	for i := range a.sent {
		a.sent[i].Span = created[a.sent[i].ID]
	}
	a.collect()
	if len(a.sent) != appMessages || a.victim == "" && a.counters().Reaped > 0 {
		a.t.Errorf("%d messages were sent, counters %+v", len(a.sent), a.counters())
	}
	a.over(appMessages, len(a.dead))
	faults := a.check()
	for _, f := range faults[:min(len(faults), 20)] {
		a.t.Error(f)
	}
	if len(faults) > 20 {
		a.t.Errorf("and %d faults more", len(faults)-20)
	}
	a.tell()
}

// collect reads dead letters, payments and the idempotency store's records.
func (a *appTrial) collect() {
	a.t.Helper()
	ctx := a.t.Context()
	a.dead = map[string]string{}
	for l, err := range a.look.EachDeadLetter(ctx, time.Time{}) {
		a.must(err)
		a.dead[l.Message.ID] = l.Reason
	}
	a.payments = map[int]int64{}
	till := a.srv.Client(func(o *redis.Options) { o.DB = tillDB })
	paid, err := till.HGetAll(ctx, tillKey(a.trial.queue)).Result()
	a.must(err)
	for number, times := range paid {
		n, err := strconv.Atoi(number)
		a.must(err)
		a.payments[n], err = strconv.ParseInt(times, 10, 64)
		a.must(err)
	}
	// The name by which the standard chain keeps its records: with another one all that is done would run again.
	store, err := idempotency.NewRedisStore(a.rdb, "zq")
	a.must(err)
	a.records = map[int]idempotency.Record{}
	for _, s := range a.sent {
		if _, known := a.records[s.Order]; !known {
			a.records[s.Order], err = store.Look(ctx, idempotency.Name{Scope: a.trial.queue, Key: order{Number: s.Order}.business()})
			a.must(err)
		}
	}
}

// tell logs what the trial was made of, and that it was one.
func (a *appTrial) tell() {
	a.t.Helper()
	n := map[string]int{}
	for _, e := range a.entries {
		n[e.Worker+" "+e.Saw]++
	}
	a.t.Logf("%v, %d dead letters of %d orders", n, len(a.dead), len(a.records))
	must := []string{"first failed", "first dead", "second failed", "second dead", "second skipped"}
	if a.victim == "" {
		must = append(must, "first released")
	}
	for _, saw := range must {
		if n[saw] == 0 {
			a.t.Errorf("this is no trial: no %q", saw)
		}
	}
}
