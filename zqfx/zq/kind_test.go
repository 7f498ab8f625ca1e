package zq_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/zqueue/zqueue/zqfx/zq"
)

type parcel struct {
	ID    string `json:"id"`
	Grams int64  `json:"grams"`
}

// shout is a codec of a user's own.
type shout struct{ err error }

func (shout) ContentType() string { return "text/shout; charset=utf-8" }

func (s shout) Marshal(v any) ([]byte, error) { return []byte(strings.ToUpper(fmt.Sprint(v))), s.err }

func (s shout) Unmarshal(data []byte, v any) error {
	*(v.(*string)) = strings.ToLower(string(data)) // panics for any other kind of payload
	return s.err
}

func delivery(m zq.Message) *zq.Delivery {
	return &zq.Delivery{Queue: "q", ID: m.ID, Kind: m.Kind, ContentType: m.ContentType, Headers: m.Headers, Body: m.Body}
}

// roundTrip encodes a payload as a kind does, and decodes what is stored with another version of it.
func roundTrip[T any](t *testing.T, from, to zq.Kind[T], v T) T {
	t.Helper()
	m, err := from.Message(v)
	if err != nil {
		t.Fatal(err)
	}
	got, err := to.Decode(delivery(m))
	if err != nil {
		t.Fatalf("%s of %q: %v", m.ContentType, m.Body, err)
	}
	return got
}

func TestKindRoundTrips(t *testing.T) {
	t.Parallel()
	big := parcel{ID: "ü\x00", Grams: 1<<60 + 1}
	plain := zq.NewKind[parcel]("parcel")
	if got := roundTrip(t, plain, plain, big); got != big {
		t.Errorf("JSON: %+v", got)
	}
	pb := zq.NewKind[*wrapperspb.Int64Value]("n", zq.WithCodec(zq.Proto{}))
	if got := roundTrip(t, pb, pb, wrapperspb.Int64(1<<60+1)); got.GetValue() != 1<<60+1 {
		t.Errorf("protobuf: %v", got)
	}
	raw := zq.NewKind[[]byte]("raw", zq.WithCodec(zq.Raw{}))
	if got := roundTrip(t, raw, raw, []byte{0, 255, 10}); string(got) != "\x00\xff\n" {
		t.Errorf("raw: %q", got)
	}
}

// What is stored decides how a body is read, so that a queue can change codecs under way.
func TestKindDecodesByStoredContentType(t *testing.T) {
	t.Parallel()
	jsonOnly := zq.NewKind[string]("s")
	rawOnly := zq.NewKind[string]("s", zq.WithCodec(zq.Raw{}))
	shouts := zq.NewKind[string]("s", zq.WithCodec(shout{}))
	both := zq.NewKind[string]("s", zq.WithCodec(shout{}), zq.AlsoDecodes(zq.Proto{}))
	late := zq.NewKind[string]("s", zq.AlsoDecodes(shout{}))
	for name, c := range map[string]struct{ from, to zq.Kind[string] }{
		"JSON to a kind that shouts":            {jsonOnly, shouts},
		"JSON to a kind that shouts and more":   {jsonOnly, both},
		"shout to one that also decodes it":     {shouts, late},
		"shout to one that shouts":              {shouts, shouts},
		"untyped bytes go to the kind's own":    {rawOnly, rawOnly},
		"JSON to one that also decodes a shout": {late, both},
	} {
		if got := roundTrip(t, c.from, c.to, "hey"); got != "hey" {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, stored := range []string{"application/json", "Application/JSON", "application/json; charset=utf-8", " application/json ;x"} {
		if got, err := shouts.Decode(&zq.Delivery{ContentType: stored, Body: []byte(`"a"`)}); err != nil || got != "a" {
			t.Errorf("%q: %q, %v", stored, got, err)
		}
	}
	m, err := both.Message("hey")
	if err != nil || m.ContentType != (shout{}).ContentType() || string(m.Body) != "HEY" || m.Kind != "s" {
		t.Errorf("encoded as %+v: %v", m, err)
	}
}

// dead checks that an error is a dead letter's, with that reason.
func dead(t *testing.T, name string, err error, reason string) {
	t.Helper()
	got := zq.Decide(&zq.Delivery{Attempt: 1}, err, nil, 10, zq.DefaultRetryDelay)
	if err == nil || got.Verdict != "bury" || got.Reason != reason {
		t.Errorf("%s: %v is %s %q, want a dead letter with reason %q", name, err, got.Verdict, got.Reason, reason)
	}
}

func TestKindUndecodable(t *testing.T) {
	t.Parallel()
	body := []byte(`{"id":`)
	mine := zq.NewKind[parcel]("parcel").Handle(func(context.Context, *zq.Delivery, parcel) error {
		t.Error("the handler got something undecodable")
		return nil
	})
	mux, err := zq.NewMux(mine)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		contentType string
		body        []byte
	}{
		"cut off":             {"application/json", body},
		"empty":               {"application/json", nil},
		"wrong shape":         {"application/json", []byte(`[]`)},
		"nested too deeply":   {"application/json", []byte(strings.Repeat("[", 20_000))},
		"unknown type":        {"application/msgpack", []byte{0x81}},
		"protobuf":            {"application/protobuf", []byte{0x0a, 0x01}},
		"number out of range": {"application/json", []byte(`{"grams":1e400}`)},
	} {
		for kind, h := range map[string]zq.Handler{"binding": mine, "mux": mux} {
			d := &zq.Delivery{Kind: "parcel", ContentType: c.contentType, Body: c.body}
			before := string(c.body)
			dead(t, kind+", "+name, h.Handle(context.Background(), d), zq.ReasonDecode)
			if string(d.Body) != before {
				t.Errorf("%s, %s: the bytes were touched", kind, name)
			}
		}
	}
}

func TestKindCodecFaults(t *testing.T) {
	t.Parallel()
	broken := zq.NewKind[string]("s", zq.WithCodec(shout{err: errOwn}))
	if _, err := broken.Message("x"); !errors.Is(err, errOwn) {
		t.Errorf("encode: %v", err)
	}
	_, err := broken.Decode(&zq.Delivery{ContentType: "text/shout"})
	dead(t, "decode", err, zq.ReasonDecode)
	if !errors.Is(err, errOwn) {
		t.Errorf("decode: %v", err)
	}
	panics := zq.NewKind[int]("n", zq.WithCodec(shout{}))
	_, err = panics.Decode(&zq.Delivery{ContentType: "text/shout", Body: []byte("7")})
	dead(t, "panic in the codec", err, zq.ReasonDecode)
	if _, err := zq.NewKind[chan int]("c").Message(make(chan int)); err == nil {
		t.Error("a channel was encoded")
	}
}

func TestKindNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", zq.MaxKind)
	for _, name := range []string{"a", "order.placed", "Größe 7", long} {
		if m, err := zq.NewKind[int](name, zq.WithAliases("x", name+"")).Message(1); err != nil || m.Kind != name {
			t.Errorf("%q: %+v, %v", name, m, err)
		}
	}
	for _, name := range []string{"", long + "k", "a\x00", "a\n", "\xff"} {
		for what, k := range map[string]zq.Kind[int]{
			"name": zq.NewKind[int](name), "alias": zq.NewKind[int]("good", zq.WithAliases("also", name)),
		} {
			_, err := k.Message(1)
			wantFaults(t, err, "kind")
			_, err = k.Decode(&zq.Delivery{Body: []byte("1")})
			wantFaults(t, err, "kind")
			_, err = k.Send(context.Background(), sink{t}, 1)
			wantFaults(t, err, "kind")
			b := k.Handle(func(context.Context, *zq.Delivery, int) error { return nil })
			wantFaults(t, b.Handle(context.Background(), &zq.Delivery{Kind: "good"}), "kind")
			if _, err = zq.NewMux(b); err == nil {
				t.Errorf("%s %q: bound", what, name)
			}
		}
	}
	_, err := zq.NewKind[int]("n", zq.WithCodec(nil)).Message(1)
	wantFaults(t, err, "kind n: codec")
	_, err = zq.NewKind[int]("n", zq.AlsoDecodes(zq.JSON{}, nil)).Message(1)
	wantFaults(t, err, "kind n: codec")
}

// sink refuses to be sent anything.
type sink struct{ t *testing.T }

func (s sink) Enqueue(context.Context, zq.Message) (zq.Receipt, error) {
	s.t.Error("sent")
	return zq.Receipt{}, nil
}

// keep keeps what it was sent.
type keep struct{ sent zq.Message }

func (k *keep) Enqueue(_ context.Context, m zq.Message) (zq.Receipt, error) {
	k.sent = m
	return zq.Receipt{ID: "made up"}, errOwn
}

func TestKindSendOptions(t *testing.T) {
	t.Parallel()
	due := time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
	var k keep
	r, err := zq.NewKind[parcel]("parcel").Send(context.Background(), &k, parcel{ID: "p"},
		zq.WithID("id"), zq.WithKey("key"), zq.WithRoute("route"), zq.WithScore(-7), zq.WithDelay(time.Minute), zq.WithDue(due),
		zq.WithHeader("a", "1"), zq.WithHeader("b", "2"), zq.WithHeader("a", "3"))
	if r.ID != "made up" || !errors.Is(err, errOwn) {
		t.Errorf("the answer is %+v, %v", r, err)
	}
	want := zq.Message{
		ID: "id", Kind: "parcel", Key: "key", Route: "route", Score: score(-7), Delay: time.Minute, Due: due,
		Headers: map[string]string{"a": "3", "b": "2"}, ContentType: "application/json", Body: []byte(`{"id":"p","grams":0}`),
	}
	if diff := cmp.Diff(want, k.sent); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	if !json.Valid(k.sent.Body) {
		t.Error("no JSON")
	}
}
