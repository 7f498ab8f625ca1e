package zq_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// validate checks m as a producer does, and sends nothing: the context has ended, which comes after.
func validate(t *testing.T, p *zq.Producer, m zq.Message) error {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := p.Enqueue(ctx, m)
	switch {
	case err == nil:
		t.Error("enqueued without a server")
	case errors.Is(err, zq.ErrInvalid):
		return err
	case !errors.Is(err, context.Canceled):
		t.Errorf("neither invalid nor cancelled: %v", err)
	}
	return nil
}

func producer(t *testing.T, opts ...zq.ProducerOption) *zq.Producer {
	t.Helper()
	p, err := zq.NewProducer(nowhere(t), "q", opts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func score(n int64) *int64 { return &n }

func headers(n, bytes int) map[string]string {
	all := make(map[string]string, n)
	for i := range n {
		all[fmt.Sprintf("h%05d", i)] = strings.Repeat("v", bytes/n-6)
	}
	return all
}

func TestMessageValid(t *testing.T) {
	t.Parallel()
	p := producer(t)
	for name, m := range map[string]zq.Message{
		"zero value":        {},
		"id at its limit":   {ID: strings.Repeat("i", zq.MaxID)},
		"id of unicode":     {ID: strings.Repeat("é", zq.MaxID/2)},
		"id of punctuation": {ID: `a|b:c{d}*/\ "`},
		"kind at its limit": {Kind: strings.Repeat("k", zq.MaxKind)},
		"key at its limit":  {Key: strings.Repeat("k", zq.MaxKey)},
		"key of any bytes":  {Key: "\x01\xff\r\n{}\x02"},
		"route":             {Route: strings.Repeat("\xfe", zq.MaxKey)},
		"content type":      {ContentType: strings.Repeat("c", zq.MaxKind)},
		"highest score":     {Score: score(zq.MaxScore)},
		"lowest score":      {Score: score(-zq.MaxScore)},
		"zero score":        {Score: score(0)},
		"largest body":      {Body: make([]byte, zq.DefaultMaxBody)},
		"empty body":        {Body: []byte{}},
		"most headers":      {Headers: headers(zq.MaxHeaders, zq.MaxHeaders*10)},
		"largest headers":   {Headers: headers(zq.MaxHeaders, zq.MaxHeaderBytes)},
		"one large header":  {Headers: map[string]string{"h": strings.Repeat("v", zq.MaxHeaderBytes-1)}},
		"empty value":       {Headers: map[string]string{"h": ""}},
		"value with breaks": {Headers: map[string]string{"h": "a\r\nb\x00"}},
		"longest delay":     {Delay: zq.MaxDelay},
		"shortest delay":    {Delay: 1},
		"due long ago":      {Due: time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC)},
		"due in epoch":      {Due: time.Unix(0, 0)},
		"due in its limit":  {Due: time.Now().Add(zq.MaxDelay)},
		"due before year 1": {Due: time.Date(-400_000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		if err := validate(t, p, m); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMessageInvalid(t *testing.T) {
	t.Parallel()
	p := producer(t)
	cases := []struct {
		name  string
		m     zq.Message
		field string
		value string // part of what the error says
	}{
		{"id too long", zq.Message{ID: strings.Repeat("i", zq.MaxID+1)}, "message.id", "257 bytes"},
		{"id of 1 MiB", zq.Message{ID: strings.Repeat("i", 1<<20)}, "message.id", "1048576 bytes"},
		{"id not UTF-8", zq.Message{ID: "a\xff"}, "message.id", "not UTF-8"},
		{"id with NUL", zq.Message{ID: "a\x00"}, "message.id", `a\x00`},
		{"id with a break", zq.Message{ID: "a\n"}, "message.id", `a\n`},
		{"id with DEL", zq.Message{ID: "a\x7f"}, "message.id", `\x7f`},
		{"id with a C1 control", zq.Message{ID: "a\u0085"}, "message.id", `\u0085`},
		{"id like a member", zq.Message{ID: "\x0100000000000001:a"}, "message.id", `\x01`},
		{"kind too long", zq.Message{Kind: strings.Repeat("k", zq.MaxKind+1)}, "message.kind", "129 bytes"},
		{"kind not UTF-8", zq.Message{Kind: "\xc3"}, "message.kind", "not UTF-8"},
		{"kind with a tab", zq.Message{Kind: "a\tb"}, "message.kind", `a\tb`},
		{"key too long", zq.Message{Key: strings.Repeat("k", zq.MaxKey+1)}, "message.key", "257 bytes"},
		{"key with NUL", zq.Message{Key: "a\x00b"}, "message.key", `a\x00b`},
		{"route too long", zq.Message{Route: strings.Repeat("k", zq.MaxKey+1)}, "message.route", "257 bytes"},
		{"route with NUL", zq.Message{Route: "\x00"}, "message.route", `\x00`},
		{"content type", zq.Message{ContentType: "a\nb"}, "message.content_type", `a\nb`},
		{"score too high", zq.Message{Score: score(zq.MaxScore + 1)}, "message.score", "9007199254740992"},
		{"score too low", zq.Message{Score: score(-zq.MaxScore - 1)}, "message.score", "-9007199254740992"},
		{"score MinInt64", zq.Message{Score: score(math.MinInt64)}, "message.score", "-9223372036854775808"},
		{"body too large", zq.Message{Body: make([]byte, zq.DefaultMaxBody+1)}, "message.body", "1048577 bytes"},
		{"headers too many", zq.Message{Headers: headers(zq.MaxHeaders+1, 650)}, "message.headers", "65"},
		{"headers too large", zq.Message{Headers: map[string]string{"h": strings.Repeat("v", zq.MaxHeaderBytes)}}, "message.headers", "16385 bytes"},
		{"header without a name", zq.Message{Headers: map[string]string{"": "v"}}, "message.headers", "empty"},
		{"header name with CR", zq.Message{Headers: map[string]string{"a\r": "v"}}, "message.headers", `a\r`},
		{"header name not UTF-8", zq.Message{Headers: map[string]string{"\xff": "v"}}, "message.headers", "not UTF-8"},
		{"header value not UTF-8", zq.Message{Headers: map[string]string{"h": "\xff"}}, "message.headers", "not UTF-8"},
		{"delay of -1 ns", zq.Message{Delay: -1}, "message.delay", "-1ns"},
		{"delay MinInt64", zq.Message{Delay: math.MinInt64}, "message.delay", "-2562047h47m16.854775808s"},
		{"delay too long", zq.Message{Delay: zq.MaxDelay + 1}, "message.delay", "87600h0m0.000000001s"},
		{"delay MaxInt64", zq.Message{Delay: math.MaxInt64}, "message.delay", "2562047h47m16.854775807s"},
		{"due and delay", zq.Message{Delay: 1, Due: time.Unix(1, 0)}, "message.due", "together"},
		{"due too late", zq.Message{Due: time.Now().Add(zq.MaxDelay + 48*time.Hour)}, "message.due", "T"},
		{"due beyond 2262", zq.Message{Due: time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC)}, "message.due", "2300-01-01T00:00:00Z"},
		{"due beyond int64", zq.Message{Due: time.Date(300_000, 1, 1, 0, 0, 0, 0, time.UTC)}, "message.due", "300000"},
	}
	for _, c := range cases {
		err := validate(t, p, c.m)
		if err == nil {
			t.Errorf("%s: valid", c.name)
			continue
		}
		wantFaults(t, err, c.field)
		if got := faults(err)[0].Value; !strings.Contains(got, c.value) {
			t.Errorf("%s: the value is %q, want it to say %q", c.name, got, c.value)
		}
	}
}

// What is wrong is said at once, and never with the payload or what headers hold.
func TestMessageFaultsAllAtOnce(t *testing.T) {
	t.Parallel()
	secret := "s3cr3t-s3cr3t"
	m := zq.Message{
		ID: "\n", Kind: "\n", Key: "\x00", Route: "\x00", ContentType: "\n", Score: score(math.MaxInt64),
		Body: []byte(strings.Repeat(secret, 1<<20)), Headers: map[string]string{"h\n": secret, "g": "\xff" + secret},
		Delay: -1, Due: time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	err := validate(t, producer(t), m)
	wantFaults(t, err,
		"message.id", "message.kind", "message.key", "message.route", "message.content_type", "message.score",
		"message.body", "message.headers", "message.headers", "message.delay", "message.due", "message.due")
	if strings.Contains(err.Error(), secret) {
		t.Error("the error quotes the message's contents")
	}
	if len(err.Error()) > 4<<10 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

func TestMessageBodyLimitOfTheProducer(t *testing.T) {
	t.Parallel()
	small := producer(t, zq.WithMaxBody(3))
	if err := validate(t, small, zq.Message{Body: []byte("abc")}); err != nil {
		t.Error(err)
	}
	err := validate(t, small, zq.Message{Body: []byte("abcd")})
	wantFaults(t, err, "message.body")
	if got := faults(err)[0].Want; got != "at most 3 bytes" {
		t.Errorf("range %q", got)
	}
	if err := validate(t, producer(t, zq.WithMaxBody(2<<20)), zq.Message{Body: make([]byte, 2<<20)}); err != nil {
		t.Error(err)
	}
}

func TestMessageOfAStrictProducer(t *testing.T) {
	t.Parallel()
	strict := producer(t, zq.Strict())
	for _, key := range []string{"", zq.StrictKey} {
		if err := validate(t, strict, zq.Message{Key: key}); err != nil {
			t.Errorf("key %q: %v", key, err)
		}
	}
	wantFaults(t, validate(t, strict, zq.Message{Key: "k"}), "message.key")
	wantFaults(t, validate(t, strict, zq.Message{Key: "k\x00"}), "message.key", "message.key")
}

func TestBatchValidation(t *testing.T) {
	t.Parallel()
	p := producer(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	results, err := p.EnqueueBatch(ctx, make([]zq.Message, zq.MaxBatch+1))
	wantFaults(t, err, "batch")
	if results != nil {
		t.Errorf("%d results of a batch that is no batch", len(results))
	}
	batch := []zq.Message{{}, {ID: "\n"}, {Delay: -1, Kind: "\x00"}, {}}
	results, err = p.EnqueueBatch(ctx, batch, zq.AllOrNone())
	wantFaults(t, err, "message.id", "message.delay", "message.kind")
	for _, place := range []string{"message 1:", "message 2:"} {
		if !strings.Contains(err.Error(), place) {
			t.Errorf("%v does not say %q", err, place)
		}
	}
	wantFaults(t, results[0].Err)
	wantFaults(t, results[1].Err, "message.id")
	wantFaults(t, results[2].Err, "message.delay", "message.kind")
	results, err = p.EnqueueBatch(ctx, batch[1:3])
	if err != nil || len(results) != 2 || results[0].Err == nil || results[1].Err == nil {
		t.Errorf("a batch of bad messages alone needs no server: %v, %+v", err, results)
	}
	if results, err = p.EnqueueBatch(ctx, nil); err != nil || len(results) != 0 {
		t.Errorf("an empty batch: %v, %v", results, err)
	}
}

func TestProducerClosed(t *testing.T) {
	t.Parallel()
	p := producer(t)
	for range 2 {
		if err := p.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Enqueue(context.Background(), zq.Message{}); !errors.Is(err, zq.ErrClosed) {
		t.Errorf("Enqueue: %v", err)
	}
	if _, err := p.EnqueueBatch(context.Background(), []zq.Message{{}}); !errors.Is(err, zq.ErrClosed) {
		t.Errorf("EnqueueBatch: %v", err)
	}
}
