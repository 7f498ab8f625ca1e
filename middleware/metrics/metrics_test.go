package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// use makes every metric have a value.
func (k *kit) use() {
	k.t.Helper()
	now := time.UnixMicro(1_700_000_000_000_000)
	d := &zq.Delivery{Queue: "orders", ID: "o-1", Key: "k", Attempt: 1, EnqueuedAt: now, DueAt: now.Add(time.Second), ClaimedAt: now.Add(3 * time.Second)}
	o := k.Observer()
	o.Claimed(zq.Claimed{Queue: "orders", Messages: []*zq.Delivery{d}, Took: 2 * time.Millisecond})
	o.Decided(d, zq.Decision{Action: zq.ActionRetry, Err: zq.ErrTimeout, Ran: 20 * time.Millisecond})
	o.Decided(&zq.Delivery{Queue: "orders", Attempt: 2}, zq.Decision{Action: zq.ActionDead, Reason: "attempts", Err: zq.ErrTimeout, Ran: 1})
	o.Settled(zq.Settled{Queue: "orders", Messages: 2, Took: 2 * time.Millisecond})
	o.Lost(zq.Lost{Queue: "orders", Messages: 3})
	o.Failed("claim", zq.ErrStoreFull)
	k.Idempotency(context.Background(), "orders", "skipped")
	_, _ = k.send(&zq.Outgoing{Queue: "orders", Messages: make([]zq.Message, 1)}, make([]zq.Result, 1), nil)
	_ = k.Middleware()(zq.HandlerFunc(nothing)).Handle(context.Background(), d)
	stop, err := k.Watch("orders", source(func(context.Context) (zq.Depth, error) { return zq.Depth{}, nil }))
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { _ = stop() })
	broken, err := k.Watch("mail", source(func(context.Context) (zq.Depth, error) { panic("boom") }))
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { _ = broken() })
	k.collect() // the broken source is counted during this one
}

func (k *kit) send(o *zq.Outgoing, results []zq.Result, err error) ([]zq.Result, error) {
	return k.Send()(func(context.Context, *zq.Outgoing) ([]zq.Result, error) { return results, err })(context.Background(), o)
}

// Kinds, units and buckets of all instruments.
func TestInstruments(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.use()
	got := map[string]string{}
	for _, m := range k.collect() {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			got[m.Name] = fmt.Sprintf("counter %s", m.Unit)
			if !data.IsMonotonic {
				got[m.Name] = fmt.Sprintf("updown %s", m.Unit)
			}
		case metricdata.Histogram[float64]:
			got[m.Name] = fmt.Sprintf("histogram %s", m.Unit)
			want := []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900}
			if diff := cmp.Diff(want, data.DataPoints[0].Bounds); diff != "" {
				t.Errorf("%s: buckets (-want +got):\n%s", m.Name, diff)
			}
		default:
			got[m.Name] = fmt.Sprintf("gauge %s", m.Unit)
		}
		if m.Description == "" {
			t.Errorf("%s has no description", m.Name)
		}
	}
	want := map[string]string{
		"messaging.client.sent.messages": "counter {message}", "messaging.client.consumed.messages": "counter {message}",
		"messaging.client.operation.duration": "histogram s", "messaging.process.duration": "histogram s",
		"messaging.zq.message.wait": "histogram s", "messaging.zq.schedule.lag": "histogram s",
		"messaging.zq.outcomes": "counter {run}", "messaging.zq.retries": "counter {message}",
		"messaging.zq.dead_letters": "counter {message}", "messaging.zq.idempotency.outcomes": "counter {message}",
		"messaging.zq.leases.lost": "counter {message}", "messaging.zq.calls.failed": "counter {call}",
		"messaging.zq.consumer.inflight": "updown {message}", "messaging.zq.queue.depth": "gauge {message}",
		"messaging.zq.queue.keys": "gauge {key}", "messaging.zq.queue.oldest_ready.age": "gauge s",
		"messaging.zq.queue.paused": "gauge {queue}", "messaging.zq.queue.read.failed": "counter {read}",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("instruments (-want +got):\n%s", diff)
	}
}

// Each message of a call is counted once, by what became of it; the call is measured.
func TestSend(t *testing.T) {
	t.Parallel()
	const sent, took = "messaging.client.sent.messages{", "messaging.client.operation.duration{"
	const at = "messaging.destination.name=orders,messaging.operation.name=send"
	duplicate := zq.Result{Receipt: zq.Receipt{Duplicate: true}}
	cases := []struct {
		name    string
		n       int
		results []zq.Result
		err     error
		want    map[string]float64
	}{
		{"one", 1, make([]zq.Result, 1), nil, map[string]float64{
			sent + at + "}": 1, took + at + ",messaging.operation.type=send}": 1,
		}},
		{"batch", 4, []zq.Result{{}, duplicate, {}, {Err: fmt.Errorf("message 3: %w", zq.ErrInvalid)}}, nil, map[string]float64{
			sent + at + "}": 2, sent + at + ",messaging.zq.enqueue.result=duplicate}": 1, sent + "error.type=invalid," + at + "}": 1,
			took + at + ",messaging.operation.type=send}": 1,
		}},
		{"failed", 3, nil, zq.ErrClosed, map[string]float64{
			sent + "error.type=closed," + at + "}": 3, took + "error.type=closed," + at + ",messaging.operation.type=send}": 1,
		}},
	}
	for _, c := range cases {
		k := newKit(t)
		results, err := k.send(&zq.Outgoing{Queue: "orders", Batch: c.n > 1, Messages: make([]zq.Message, c.n)}, c.results, c.err)
		if len(results) != len(c.results) || !errors.Is(err, c.err) {
			t.Errorf("%s: the caller gets %v, %v", c.name, results, err)
		}
		k.want(c.name, c.want)
	}
}

// What the core decides is what is counted.
func TestDecided(t *testing.T) {
	t.Parallel()
	const queue, process = "messaging.destination.name=orders", "messaging.operation.name=process"
	ran := func(failure string) map[string]float64 {
		return map[string]float64{
			"messaging.client.consumed.messages{" + failure + queue + "," + process + "}": 1,
			"messaging.process.duration{" + failure + queue + "," + process + "}":         1,
		}
	}
	cases := []struct {
		dec     zq.Decision
		failure string
		more    map[string]float64
	}{
		{zq.Decision{Action: zq.ActionAck}, "", nil},
		{zq.Decision{Action: zq.ActionPostpone, Err: zq.Postpone(1)}, "", nil},
		{zq.Decision{Action: zq.ActionRelease, Err: context.Canceled, Cause: zq.ErrShutdown}, "", nil},
		{zq.Decision{Action: zq.ActionDrop, Err: context.Canceled, Cause: zq.ErrLeaseLost}, "error.type=lease_lost,", nil},
		{zq.Decision{Action: zq.ActionRetry, Err: &zq.PanicError{}}, "error.type=panic,", map[string]float64{
			"messaging.zq.retries{error.type=panic," + queue + "}": 1,
		}},
		{zq.Decision{Action: zq.ActionDead, Reason: "decode", Err: errors.New("bad")}, "error.type=_OTHER,", map[string]float64{
			"messaging.zq.dead_letters{" + queue + ",messaging.zq.dlq.reason=decode}": 1,
		}},
	}
	for _, c := range cases {
		k := newKit(t)
		c.dec.Ran = time.Millisecond
		k.Observer().Decided(&zq.Delivery{Queue: "orders", Attempt: 2}, c.dec)
		want := ran(c.failure)
		want["messaging.zq.outcomes{"+c.failure+queue+",messaging.zq.outcome="+string(c.dec.Action)+"}"] = 1
		for name, v := range c.more {
			want[name] = v
		}
		k.want(string(c.dec.Action), want)
	}
}

// A message that nobody could read has had no run.
func TestDecidedUnreadable(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.Observer().Decided(&zq.Delivery{Queue: "orders", Attempt: 1}, zq.Decision{Action: zq.ActionDead, Reason: zq.ReasonEnvelope, Err: errors.New("gone")})
	k.want("unreadable", map[string]float64{
		"messaging.zq.outcomes{error.type=_OTHER,messaging.destination.name=orders,messaging.zq.outcome=dead}": 1,
		"messaging.zq.dead_letters{messaging.destination.name=orders,messaging.zq.dlq.reason=envelope}":        1,
	})
}

// The wait is from when a message was due to its claim, by the server's clock, for first runs alone; the lag is that
// of delayed messages.
func TestWait(t *testing.T) {
	t.Parallel()
	now := time.UnixMicro(1_700_000_000_000_000)
	cases := []struct {
		name      string
		d         zq.Delivery
		action    zq.Action
		wait, lag []float64
	}{
		{"at once", zq.Delivery{Attempt: 1, DueAt: now, ClaimedAt: now.Add(2 * time.Second)}, zq.ActionAck, []float64{2}, nil},
		{"delayed", zq.Delivery{Attempt: 1, DueAt: now.Add(time.Minute), ClaimedAt: now.Add(61 * time.Second)}, zq.ActionRetry, []float64{1}, []float64{1}},
		{"roused early", zq.Delivery{Attempt: 1, DueAt: now.Add(time.Minute), ClaimedAt: now}, zq.ActionAck, []float64{0}, []float64{0}},
		{"second run", zq.Delivery{Attempt: 2, DueAt: now, ClaimedAt: now}, zq.ActionAck, nil, nil},
		{"replayed", zq.Delivery{Attempt: 1, Replays: 1, DueAt: now, ClaimedAt: now}, zq.ActionAck, nil, nil},
		{"put off before", zq.Delivery{Attempt: 1, Trace: "its first run", DueAt: now, ClaimedAt: now}, zq.ActionAck, nil, nil},
		{"given back", zq.Delivery{Attempt: 1, DueAt: now, ClaimedAt: now}, zq.ActionRelease, nil, nil},
		{"plain", zq.Delivery{Attempt: 1, ClaimedAt: now, Plain: true}, zq.ActionAck, nil, nil},
	}
	for _, c := range cases {
		k := newKit(t)
		c.d.Queue, c.d.EnqueuedAt = "orders", now
		k.Observer().Decided(&c.d, zq.Decision{Action: c.action, Ran: 1})
		var wait, lag []float64
		for _, m := range k.collect() {
			if h, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == "messaging.zq.message.wait" {
				wait = append(wait, h.DataPoints[0].Sum)
			} else if ok && m.Name == "messaging.zq.schedule.lag" {
				lag = append(lag, h.DataPoints[0].Sum)
			}
		}
		if !slices.Equal(wait, c.wait) || !slices.Equal(lag, c.lag) {
			t.Errorf("%s: waits %v, lags %v, want %v, %v", c.name, wait, lag, c.wait, c.lag)
		}
	}
}

// Calls that claim and settle are measured, failed ones by the class of their error.
func TestCalls(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	o := k.Observer()
	o.Claimed(zq.Claimed{Queue: "orders", Messages: make([]*zq.Delivery, 3), Took: time.Millisecond})
	o.Settled(zq.Settled{Queue: "orders", Messages: 3, Took: time.Millisecond})
	o.Settled(zq.Settled{Queue: "orders", Messages: 3, Err: zq.ErrStoreFull})
	o.Lost(zq.Lost{Queue: "orders", Messages: 5})
	o.Failed("settle", zq.ErrStoreFull)
	k.Idempotency(context.Background(), "orders", "skipped")
	const took, queue = "messaging.client.operation.duration{", "messaging.destination.name=orders"
	k.want("calls", map[string]float64{
		took + queue + ",messaging.operation.name=claim,messaging.operation.type=receive}":                            1,
		took + queue + ",messaging.operation.name=settle,messaging.operation.type=settle}":                            1,
		took + "error.type=store_full," + queue + ",messaging.operation.name=settle,messaging.operation.type=settle}": 1,
		"messaging.zq.leases.lost{" + queue + "}":                                                                     5,
		"messaging.zq.calls.failed{error.type=store_full,messaging.zq.call=settle}":                                   1,
		"messaging.zq.idempotency.outcomes{" + queue + ",messaging.zq.idempotency.outcome=skipped}":                   1,
	})
}

// Runs in flight go up and down, also past a panic.
func TestInflight(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	const series = "messaging.zq.consumer.inflight{messaging.destination.name=orders}"
	h := k.Middleware()(zq.HandlerFunc(func(context.Context, *zq.Delivery) error {
		if got := k.points()[series]; got != 1 {
			t.Errorf("%v in flight during the run", got)
		}
		panic("boom")
	}))
	func() {
		defer func() {
			if recover() != "boom" {
				t.Error("the panic did not pass")
			}
		}()
		_ = h.Handle(t.Context(), &zq.Delivery{Queue: "orders"})
	}()
	if got := k.points()[series]; got != 0 {
		t.Errorf("%v in flight after the run", got)
	}
}

// textError is an error whose text has an id in it.
type textError struct{ id int }

func (e *textError) Error() string { return fmt.Sprint("no such customer: ", e.id) }

// A hundred thousand ids, keys, reasons and texts make no more series than a thousand do.
func TestCardinality(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	o := k.Observer()
	feed := func(from, to int) int {
		for i := from; i < to; i++ {
			id := fmt.Sprint("id-", i)
			d := &zq.Delivery{Queue: "orders", ID: id, Key: id, Kind: id, Attempt: 1, Headers: map[string]string{id: id}}
			o.Decided(d, zq.Decision{Action: zq.ActionDead, Reason: id, Err: zq.Dead(id, &textError{i}), Ran: 1})
			o.Decided(d, zq.Decision{Action: zq.ActionRetry, Err: fmt.Errorf("%s: %w", id, errors.New(id)), Ran: 1})
			o.Failed("call "+id, errors.New(id))
			k.Idempotency(context.Background(), "orders", id)
			_, _ = k.send(&zq.Outgoing{Queue: "orders", Messages: []zq.Message{{ID: id, Key: id}}}, []zq.Result{{Err: &textError{i}}}, &textError{i})
		}
		return len(k.points())
	}
	few := feed(0, 1000)
	if many := feed(1000, 100_000); many != few || many > 200 {
		t.Errorf("%d series after 1,000 ids, %d after 100,000", few, many)
	}
	if got := k.only("messaging.zq.dead_letters{"); len(got) != 51 ||
		got["messaging.zq.dead_letters{messaging.destination.name=orders,messaging.zq.dlq.reason=other}"] != 100_000-50 {
		t.Errorf("%d reasons: %v", len(got), got)
	}
}

// Everything may be called at once; the bound on words holds then too.
func TestMetricsConcurrentSafe(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	o := k.Observer()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				d := &zq.Delivery{Queue: "orders", Attempt: 1}
				o.Decided(d, zq.Decision{Action: zq.ActionDead, Reason: fmt.Sprint(g, "-", i), Ran: 1})
				_ = k.Middleware()(zq.HandlerFunc(nothing)).Handle(context.Background(), d)
			}
		})
	}
	wg.Wait()
	sum := 0.0
	reasons := k.only("messaging.zq.dead_letters{")
	for _, v := range reasons {
		sum += v
	}
	if len(reasons) != 51 || sum != 1600 {
		t.Errorf("%d reasons, %v dead letters", len(reasons), sum)
	}
}
