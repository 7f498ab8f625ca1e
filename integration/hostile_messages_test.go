package integration_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// hostile is a message that somebody may send. It is refused for the field, or comes back byte for byte.
type hostile struct {
	name   string
	m      zq.Message
	refuse string
}

func everyByte() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func at(n int64) *int64 { return &n }

// The ids and keys of RELIABILITY §4.1 that may be both.
func hostileNames() []hostile {
	names := map[string]string{
		"one space": " ", "brace": "{", "closing brace": "}", "braces": "{}", "brace inside": "a}b{c", "other tag": "{other}",
		"colon": "q:1", "path": "../../x", "star": "*", "bad glob": "[a", "percent": "%s%n%x", "template": "{{.}}",
		"right to left": "a\u202eb", "composed": "\u00e9", "decomposed": "e\u0301", "emoji": "👩‍🚀", "zero": "0", "nil": "nil",
		"false": "false", "case": "CASE", "other case": "case", "one": "1", "01": "01", "1.0": "1.0", "bar": "a|b",
		"bar and numbers": "cid|1|0", "quote": `"`, "markup": "<script>alert(1)</script>", "sql": "'; DROP TABLE x;--", "delayed": "delayed",
		"halted": "halted", "no break space": "\u00a0", "replacement": "\ufffd", "backslash": `\`, "inf": "inf", "nan": "nan",
		"longest": strings.Repeat("x", 256), "longest in unicode": strings.Repeat("é", 128),
	}
	var out []hostile
	for name, s := range names {
		out = append(out, hostile{name: "id " + name, m: zq.Message{ID: s}}, hostile{name: "key " + name, m: zq.Message{Key: s}},
			hostile{name: "key is id " + name, m: zq.Message{ID: s, Key: s}})
	}
	for name, s := range map[string]string{
		"NUL": "a\x00b", "CRLF": "\r\nFLUSHALL\r\n", "bad UTF-8": "\xff\xfe", "C1": "\u0085", "marker": "\x01lane", "too long": strings.Repeat("x", 257),
		"512 bytes": strings.Repeat("x", 512), "1 MiB": strings.Repeat("x", 1<<20), "escape": "\x1b[2J", "tab": "\t", "DEL": "\x7f",
	} {
		out = append(out, hostile{name: "id " + name, m: zq.Message{ID: s}, refuse: "message.id"})
	}
	for name, s := range map[string]string{
		"CRLF": "\r\nFLUSHALL\r\n", "bad UTF-8": "\xff\xfe", "marker": "\x01lane", "like a member": "\x0100000000000001:a", "plain mark": "\x02x",
		"every byte but NUL": string(everyByte()[1:]),
	} {
		out = append(out, hostile{name: "key " + name, m: zq.Message{Key: s}})
	}
	for name, s := range map[string]string{"NUL": "a\x00b", "only NUL": "\x00", "too long": strings.Repeat("x", 257)} {
		out = append(out, hostile{name: "key " + name, m: zq.Message{Key: s}, refuse: "message.key"},
			hostile{name: "route " + name, m: zq.Message{Route: s}, refuse: "message.route"})
	}
	return out
}

func hostileBodies() []hostile {
	deep := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
	var out []hostile
	for name, body := range map[string]string{
		"empty": "", "every byte": string(everyByte()), "cut off JSON": `{"id":`, "2^60": `{"n":1152921504606846976,"list":[],"map":{}}`,
		"JSON of depth": deep, "doubled fields": `{"a":1,"a":2}`, "Lua": `return redis.call('FLUSHALL')`, "markup": `"><img onerror=x>`,
		"format": "%s%n{{.}}", "ANSI": "\x1b[31mred\n", "msgpack": "\x81\xa1a\x01", "gzip": "\x1f\x8b\x08\x00\x00\x00\x00\x00",
		"envelope": "\x0a\x0e00000000000001\x12\x01k", "RESP": "*1\r\n$8\r\nFLUSHALL\r\n", "largest": strings.Repeat("\xa5", zq.DefaultMaxBody),
	} {
		out = append(out, hostile{name: "body " + name, m: zq.Message{ID: "b", Body: []byte(body)}})
	}
	header := func(name, value string) map[string]string { return map[string]string{name: value} }
	many := map[string]string{}
	for i := range 65 {
		many[string(rune('A'+i))] = ""
	}
	return append(out,
		hostile{"body one too large", zq.Message{Body: make([]byte, zq.DefaultMaxBody+1)}, "message.body"},
		hostile{"header value with CRLF", zq.Message{ID: "h", Headers: header("a", "b\r\nSet-Cookie: x")}, ""},
		hostile{"header name in upper case", zq.Message{ID: "h", Headers: header("X-UPPER", "1")}, ""},
		hostile{"header like a map's", zq.Message{ID: "h", Headers: header("__proto__", "\x00")}, ""},
		hostile{"header traceparent of zeros", zq.Message{ID: "h", Headers: header("traceparent", "00-00000000000000000000000000000000-0-00")}, ""},
		hostile{"header of 16 KiB", zq.Message{ID: "h", Headers: header("traceparent", strings.Repeat("f", 16<<10-11))}, ""},
		hostile{"header over 16 KiB", zq.Message{Headers: header("traceparent", strings.Repeat("f", 16<<10-10))}, "message.headers"},
		hostile{"header name with CRLF", zq.Message{Headers: header("a\r\nb", "1")}, "message.headers"},
		hostile{"header name of NUL", zq.Message{Headers: header("\x00", "1")}, "message.headers"},
		hostile{"header without a name", zq.Message{Headers: header("", "1")}, "message.headers"},
		hostile{"header not UTF-8", zq.Message{Headers: header("a", "\xff")}, "message.headers"},
		hostile{"65 headers", zq.Message{Headers: many}, "message.headers"},
		hostile{"kind of markup", zq.Message{ID: "k", Kind: "<b>"}, ""},
		hostile{"kind with a break", zq.Message{Kind: "a\nb"}, "message.kind"},
		hostile{"kind too long", zq.Message{Kind: strings.Repeat("k", 129)}, "message.kind"},
		hostile{"content type of nonsense", zq.Message{ID: "c", ContentType: ";;;;"}, ""},
		hostile{"content type with NUL", zq.Message{ContentType: "a\x00"}, "message.content_type"},
	)
}

func hostileNumbers() []hostile {
	past := func(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
	return []hostile{
		{"score 2^53-1", zq.Message{ID: "s", Score: at(1<<53 - 1)}, ""},
		{"score -(2^53-1)", zq.Message{ID: "s", Score: at(1 - 1<<53)}, ""},
		{"score -0", zq.Message{ID: "s", Score: at(0)}, ""},
		{"score 2^53", zq.Message{Score: at(1 << 53)}, "message.score"},
		{"score -2^53", zq.Message{Score: at(-1 << 53)}, "message.score"},
		{"score MaxInt64", zq.Message{Score: at(math.MaxInt64)}, "message.score"},
		{"score MinInt64", zq.Message{Score: at(math.MinInt64)}, "message.score"},
		{"delay 1 ns", zq.Message{ID: "d", Delay: 1}, ""},
		{"delay 999 µs", zq.Message{ID: "d", Delay: 999 * time.Microsecond}, ""},
		{"delay with a score", zq.Message{ID: "d", Delay: time.Millisecond, Score: at(-5)}, ""},
		{"delay with a key", zq.Message{ID: "d", Key: "k", Delay: time.Millisecond}, ""},
		{"delay -1 ns", zq.Message{Delay: -1}, "message.delay"},
		{"delay MinInt64", zq.Message{Delay: math.MinInt64}, "message.delay"},
		{"delay MaxInt64", zq.Message{Delay: math.MaxInt64}, "message.delay"},
		{"delay of 30 years", zq.Message{Delay: 30 * 365 * 24 * time.Hour}, "message.delay"},
		{"due in 1970", zq.Message{ID: "d", Due: time.Unix(0, 0)}, ""},
		{"due in year 1", zq.Message{ID: "d", Due: past(1).Add(1)}, ""},
		{"due in year 0", zq.Message{ID: "d", Due: past(0)}, ""},
		{"due in year -400,000", zq.Message{ID: "d", Due: past(-400_000)}, ""},
		{"due in 2300", zq.Message{Due: past(2300)}, "message.due"},
		{"due in year 400,000", zq.Message{Due: past(400_000)}, "message.due"},
		{"due and delay", zq.Message{Due: time.Now(), Delay: 1}, "message.due"},
	}
}

func TestHostileNames(t *testing.T)   { t.Parallel(); tryHostile(t, hostileNames()) }
func TestHostileBodies(t *testing.T)  { t.Parallel(); tryHostile(t, hostileBodies()) }
func TestHostileNumbers(t *testing.T) { t.Parallel(); tryHostile(t, hostileNumbers()) }

// tryHostile sends each, one after the other, through one queue and one consumer.
func tryHostile(t *testing.T, table []hostile) {
	x := newTrial(t, zq.WithDedupeWindow(0))
	got := x.echoes()
	for _, h := range table {
		if h.refuse != "" {
			x.unchanged(h.name, func() {
				_, err := x.prod.Enqueue(t.Context(), h.m)
				invalidField(t, h.name, err, h.refuse)
			})
			continue
		}
		r, err := x.prod.Enqueue(t.Context(), h.m)
		if err != nil || r.Duplicate {
			t.Errorf("%s: %+v, %v", h.name, r, err)
			continue
		}
		h.m.ID = r.ID
		t.Log(h.name)
		d := zqt.Wait(t, got, patience)
		same(t, h.name, h.m, d)
		if h.m.Score != nil && d.Score != float64(*h.m.Score) {
			t.Errorf("%s: score %v, want %d", h.name, d.Score, *h.m.Score)
		}
		if h.m.Delay > 0 && d.EnqueuedAt.After(time.Now()) {
			t.Errorf("%s: enqueued at %v", h.name, d.EnqueuedAt)
		}
		x.settled()
		x.clean(h.name)
	}
}

// Odd but valid queue names live side by side, nested prefixes and all; the others are refused before any I/O.
func TestHostileQueueNames(t *testing.T) {
	t.Parallel()
	rdb := zqt.Redis(t).Client()
	good := []string{"-", ".", "..", "_", "0", "a", "a.b", "a.b.c", "A", "zq", "x-", strings.Repeat("q", 128)}
	for _, q := range good {
		p, err := zq.NewProducer(rdb, q)
		if err != nil {
			t.Fatal(err)
		}
		// One id in every queue, and a key like another queue's.
		if r, err := p.Enqueue(t.Context(), zq.Message{ID: "same", Key: "a.b", Body: []byte(q)}); err != nil || r.Duplicate {
			t.Errorf("%q: %+v, %v", q, r, err)
		}
	}
	for _, q := range good {
		in, err := zq.NewInspector(rdb, q)
		if err != nil {
			t.Fatal(err)
		}
		info, err := in.Message(t.Context(), "same")
		if err != nil || string(info.Message.Body) != q {
			t.Errorf("%q: %+v, %v", q, info, err)
		}
		if r, err := in.Verify(t.Context(), 0); err != nil || r.Messages != 1 || len(r.Problems) > 0 {
			t.Errorf("%q: %+v, %v", q, r, err)
		}
	}
	before := rdb.DBSize(t.Context()).Val()
	for _, q := range []string{
		"", " ", "{", "}", "{}", "a}b{c", "}x", ":", "{other}", "q:1", "../../x", "*", "zq:{q}:ready", "a\x00", "\r\nFLUSHALL\r\n", "\xff\xfe",
		"\u202e", "é", "👩‍🚀", strings.Repeat("q", 129), strings.Repeat("q", 10<<10), "a/3", "a b", "a\tb",
	} {
		_, err1 := zq.NewProducer(rdb, q)
		_, err2 := zq.NewInspector(rdb, q)
		_, err3 := zq.NewConsumer(rdb, q, zq.HandlerFunc(nil), zq.ConsumerConfig{})
		for _, err := range []error{err1, err2, err3} {
			invalidField(t, q, err, "queue")
		}
	}
	if after := rdb.DBSize(t.Context()).Val(); after != before {
		t.Errorf("%d keys before, %d after", before, after)
	}
}

// Shapes of batches: each place has its answer, and what is bad does not sink the rest unless asked to.
func TestHostileBatches(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	send := func(msgs []zq.Message, opts ...zq.BatchOption) ([]zq.Result, error) {
		return x.prod.EnqueueBatch(t.Context(), msgs, opts...)
	}
	x.unchanged("an empty batch", func() {
		if r, err := send(nil); err != nil || len(r) != 0 {
			t.Errorf("%v, %v", r, err)
		}
	})
	x.unchanged("a batch over its limit", func() {
		_, err := send(make([]zq.Message, zq.MaxBatch+1))
		invalidField(t, "10,001", err, "batch")
	})
	bad := zq.Message{ID: "\n"}
	x.unchanged("all or none", func() {
		r, err := send([]zq.Message{{ID: "a"}, bad, {ID: "b"}}, zq.AllOrNone())
		invalidField(t, "all or none", err, "message.id")
		if len(r) != 3 || r[1].Err == nil {
			t.Errorf("%+v", r)
		}
	})
	r, err := send([]zq.Message{bad, {ID: "a"}, {ID: "a", Body: []byte("other")}, {ID: "A"}, bad, {ID: "d", Delay: time.Hour}, {ID: "d"}, {}, {}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"refused", "accepted", "pending", "accepted", "refused", "accepted", "delayed", "accepted", "accepted"}
	for i, one := range r {
		got := "accepted"
		if one.Err != nil {
			got = "refused"
		} else if one.Duplicate {
			got = string(one.State)
		}
		if got != want[i] || (one.Err != nil) != errors.Is(one.Err, zq.ErrInvalid) {
			t.Errorf("message %d is %s (%+v), want %s", i, got, one, want[i])
		}
	}
	if info, err := x.look.Message(t.Context(), "a"); err != nil || len(info.Message.Body) != 0 {
		t.Errorf("the first of two with one id counts: %+v, %v", info, err)
	}
	x.clean("mixed")
	if r, err := send(make([]zq.Message, zq.MaxBatch)); err != nil || len(r) != zq.MaxBatch || r[zq.MaxBatch-1].Sequence-r[0].Sequence < zq.MaxBatch-1 {
		t.Errorf("a batch at its limit: %d results, %v", len(r), err)
	}
	x.clean("at the limit")
}
