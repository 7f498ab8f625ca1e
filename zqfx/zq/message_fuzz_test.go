package zq_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// echo is a queue on the shared server whose deliveries come back by a channel.
type echo struct {
	send *zq.Producer
	look *zq.Inspector
	got  chan *zq.Delivery
}

func newEcho(tb testing.TB) *echo {
	tb.Helper()
	rdb, queue := zqtest.Shared(tb).Client(), zqtest.Queue(tb)
	e := &echo{got: make(chan *zq.Delivery, 100)}
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	var err error
	// No record of an id: a fuzzer tries the same one again.
	e.send, err = zq.NewProducer(rdb, queue, zq.WithDedupeWindow(0), zq.WithMaxBody(zq.HardMaxBody))
	must(err)
	e.look, err = zq.NewInspector(rdb, queue)
	must(err)
	c, err := zq.NewConsumer(rdb, queue, zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		e.got <- d
		return nil
	}), zq.ConsumerConfig{Logger: slog.New(slog.DiscardHandler)})
	must(err)
	must(c.Start(context.Background()))
	tb.Cleanup(func() { must(c.Stop(context.Background())) })
	return e
}

// asEnqueued compares what came back with what was sent.
func asEnqueued(t *testing.T, m, back zq.Message) {
	t.Helper()
	if back.ID != m.ID || back.Kind != m.Kind || back.Key != m.Key || back.ContentType != m.ContentType ||
		!bytes.Equal(back.Body, m.Body) || !maps.Equal(back.Headers, m.Headers) {
		t.Errorf("sent %#v, came back as %#v", m, back)
	}
}

// valid is the contract of issue 2, written anew.
func valid(m *zq.Message) bool {
	word := func(s string, most int) bool {
		return len(s) <= most && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
	}
	key := func(s string) bool { return len(s) <= 256 && !strings.Contains(s, "\x00") }
	size := 0
	for name, value := range m.Headers {
		size += len(name) + len(value)
		if name == "" || !word(name, math.MaxInt) || !utf8.ValidString(value) {
			return false
		}
	}
	return word(m.ID, 256) && word(m.Kind, 128) && word(m.ContentType, 128) && key(m.Key) && key(m.Route) &&
		*m.Score <= 1<<53-1 && *m.Score >= -(1<<53-1) && len(m.Headers) <= 64 && size <= 16<<10 &&
		m.Delay >= 0 && m.Delay <= 10*365*24*time.Hour
}

// FuzzMessage sends any message: it is refused with its faults named, or comes back byte for byte.
func FuzzMessage(f *testing.F) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	f.Add("order-1", "order.placed", "customer-7", "eu", "application/json", "traceparent", "00-ab", all, int64(0), int64(0))
	f.Add("", "", "", "", "", "h", "", []byte(nil), int64(math.MaxInt64), int64(0))
	f.Add("a\x00", "k", "\x00", "", "", "", "", []byte("x"), int64(-1), int64(-1))
	f.Add("{a}:*|\\", "ü", "\r\nFLUSHALL\r\n", "\xff", "t", "h", "\x1b[31m", []byte("${jndi}"), int64(1<<53-1), int64(1))
	f.Add("é", "\u202e", "\x01lane", "r", "c", "h", "v", []byte{0}, int64(-1<<53), int64(time.Hour))
	f.Add("e\u0301", "👩‍🚀", "\x01\xff\xfe", "r", "c", "h", "v", []byte{0}, int64(-1<<53+1), int64(11*365*24*time.Hour))
	f.Add("nil", "false", "0", "r", "c", "h", strings.Repeat("v", 1<<14), []byte{0}, int64(7), int64(math.MinInt64))
	e := newEcho(f)
	f.Fuzz(func(t *testing.T, id, kind, key, route, contentType, name, value string, body []byte, score, delay int64) {
		m := zq.Message{
			ID: id, Kind: kind, Key: key, Route: route, ContentType: contentType, Headers: map[string]string{name: value},
			Body: body, Score: &score, Delay: time.Duration(delay),
		}
		r, err := e.send.Enqueue(t.Context(), m)
		if !valid(&m) {
			if wrong := (*zq.InvalidError)(nil); !errors.As(err, &wrong) {
				t.Errorf("%#v: %v, want an *InvalidError", m, err)
			}
			return
		}
		if err != nil {
			t.Fatalf("%#v: %v", m, err)
		}
		if m.ID == "" {
			m.ID = r.ID
		}
		switch {
		case r.Duplicate: // of one that is delayed for long
		case m.Delay > 10*time.Millisecond:
			info, err := e.look.Message(t.Context(), m.ID)
			if err != nil || info.State != zq.StateDelayed || info.Score != float64(score) || info.Message.Route != route {
				t.Errorf("%#v: %+v, %v", m, info, err)
			}
			asEnqueued(t, m, info.Message)
		default:
			d := zqtest.Wait(t, e.got, limit)
			if d.Score != float64(score) || d.Attempt != 1 || d.Plain || d.Sequence != r.Sequence {
				t.Errorf("%#v: %+v", m, d)
			}
			asEnqueued(t, m, zq.Message{
				ID: d.ID, Kind: d.Kind, Key: d.Key, ContentType: d.ContentType, Headers: d.Headers, Body: d.Body,
			})
		}
	})
}
