package envelope_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/zqueue/zqueue/zqfx/zq/internal/envelope"
)

func allBytes() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// full is an envelope with everything that a producer writes.
func full() envelope.Envelope {
	return envelope.Envelope{
		ID: "order-100", Kind: "order.placed", ContentType: "application/json", Route: "\x01\xff",
		Headers: map[string]string{"traceparent": "00-aa-bb-01", "": "no name", "empty": "", "ü": "👩‍🚀"},
		Body:    allBytes(), Dedupe: time.Hour,
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range 64 {
		many[fmt.Sprint("h", i)] = strings.Repeat("v", i)
	}
	for name, e := range map[string]envelope.Envelope{
		"zero":            {},
		"full":            full(),
		"body":            {Body: allBytes()},
		"one byte":        {Body: []byte{0}},
		"1 MiB":           {Body: bytes.Repeat(allBytes(), 4096)},
		"headers":         {Headers: many},
		"shortest dedupe": {Dedupe: time.Microsecond},
		"longest dedupe":  {Dedupe: time.Duration(math.MaxInt64).Truncate(time.Microsecond)},
		"long texts":      {ID: strings.Repeat("i", 256), Kind: strings.Repeat("k", 128), Route: strings.Repeat("\xff", 256)},
	} {
		raw := envelope.Append(nil, &e)
		got, err := envelope.Decode(string(raw))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(e, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if size := envelope.Size(&e); size < len(raw) {
			t.Errorf("%s: Size says at most %d, there are %d", name, size, len(raw))
		}
		if prefixed := envelope.Append([]byte("prefix"), &e); string(prefixed) != "prefix"+string(raw) {
			t.Errorf("%s: Append does not append", name)
		}
	}
}

// A dedupe window below a microsecond is one all the same: absent would mean that the id is not remembered.
func TestDedupeRounding(t *testing.T) {
	t.Parallel()
	for given, want := range map[time.Duration]time.Duration{
		0: 0, -1: 0, 1: time.Microsecond, 999: time.Microsecond, 1500: time.Microsecond, 2000: 2 * time.Microsecond,
	} {
		got, err := envelope.Decode(string(envelope.Append(nil, &envelope.Envelope{Dedupe: given})))
		if err != nil || got.Dedupe != want {
			t.Errorf("%v: %v, %v", given, got.Dedupe, err)
		}
	}
	raw := protowire.AppendVarint(protowire.AppendTag(nil, 9, protowire.VarintType), math.MaxUint64)
	if got, err := envelope.Decode(string(raw)); err != nil || got.Dedupe < 290*365*24*time.Hour {
		t.Errorf("a damaged record of 2^64-1: %v, %v", got.Dedupe, err)
	}
}

func TestEqualEnvelopesHaveEqualBytes(t *testing.T) {
	t.Parallel()
	e := full()
	want := envelope.Append(nil, &e)
	for range 50 {
		e.Headers = maps.Clone(e.Headers)
		if got := envelope.Append(nil, &e); !bytes.Equal(got, want) {
			t.Fatalf("got %q, then %q", want, got)
		}
	}
}

// The script puts the sequence and the key in front.
func TestHeadOfTheScript(t *testing.T) {
	t.Parallel()
	e := full()
	for _, key := range []string{"", "k", strings.Repeat("k", 127), strings.Repeat("\xff", 128), strings.Repeat("k", 256)} {
		head := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "00000000000abc")
		if key != "" {
			head = protowire.AppendString(protowire.AppendTag(head, 2, protowire.BytesType), key)
		}
		got, err := envelope.Decode(string(envelope.Append(head, &e)))
		want := full()
		want.Sequence, want.Key = "00000000000abc", key
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("key of %d bytes: %v (-want +got):\n%s", len(key), err, diff)
		}
	}
}

// unknown are fields that this version does not know, one of each wire type, a deep group among them.
func unknown() []byte {
	b := protowire.AppendVarint(protowire.AppendTag(nil, 100, protowire.VarintType), math.MaxUint64)
	b = protowire.AppendFixed32(protowire.AppendTag(b, 101, protowire.Fixed32Type), 7)
	b = protowire.AppendFixed64(protowire.AppendTag(b, 102, protowire.Fixed64Type), 7)
	b = protowire.AppendBytes(protowire.AppendTag(b, 536870911, protowire.BytesType), allBytes())
	for range 50 {
		b = protowire.AppendTag(b, 103, protowire.StartGroupType)
	}
	for range 50 {
		b = protowire.AppendTag(b, 103, protowire.EndGroupType)
	}
	return b
}

func TestUnknownFieldsArePassedOver(t *testing.T) {
	t.Parallel()
	e := full()
	raw := append(append(unknown(), envelope.Append(nil, &e)...), unknown()...)
	got, err := envelope.Decode(string(raw))
	if diff := cmp.Diff(e, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	// A field that is known by its number but comes as another wire type is unknown too.
	for n := protowire.Number(1); n <= 9; n++ {
		odd := protowire.AppendFixed32(protowire.AppendTag(nil, n, protowire.Fixed32Type), 7)
		if n != 9 {
			odd = protowire.AppendVarint(protowire.AppendTag(odd, n, protowire.VarintType), 7)
		} else {
			odd = protowire.AppendString(protowire.AppendTag(odd, n, protowire.BytesType), "7")
		}
		got, err := envelope.Decode(string(append(odd, envelope.Append(nil, &e)...)))
		if diff := cmp.Diff(e, got); err != nil || diff != "" {
			t.Errorf("field %d: %v (-want +got):\n%s", n, err, diff)
		}
	}
}

// The last value of a field counts, as protobuf has it.
func TestRepeatedFields(t *testing.T) {
	t.Parallel()
	first := envelope.Envelope{ID: "a", Kind: "k", Headers: map[string]string{"x": "1", "y": "1"}, Body: []byte("1"), Dedupe: time.Second}
	second := envelope.Envelope{ID: "b", Headers: map[string]string{"x": "2"}, Body: []byte("22")}
	got, err := envelope.Decode(string(envelope.Append(envelope.Append(nil, &first), &second)))
	want := envelope.Envelope{ID: "b", Kind: "k", Headers: map[string]string{"x": "2", "y": "1"}, Body: []byte("22"), Dedupe: time.Second}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestMalformed(t *testing.T) {
	t.Parallel()
	e := full()
	whole := envelope.Append(nil, &e)
	ends := map[int]bool{0: true}
	for at := 0; at < len(whole); { // where a field ends, a shorter envelope is one too
		_, _, n := protowire.ConsumeField(whole[at:])
		at += n
		ends[at] = true
	}
	for n := range whole {
		if _, err := envelope.Decode(string(whole[:n])); ends[n] != (err == nil) || err != nil && !errors.Is(err, envelope.ErrMalformed) {
			t.Errorf("cut after %d of %d bytes: %v", n, len(whole), err)
		}
	}
	entry := func(inner string) string {
		return string(protowire.AppendString(protowire.AppendTag(nil, 6, protowire.BytesType), inner))
	}
	for name, raw := range map[string]string{
		"field number 0":       "\x02\x00",
		"end of no group":      "\x0c",
		"group without an end": "\x0b",
		"wire type 6":          "\x0e",
		"wire type 7":          "\x0f",
		"endless varint":       "\x48\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"length of 2^63":       "\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
		"header cut off":       entry("\x0a"),
		"header of garbage":    entry("\x0c"),
		"header value cut off": entry("\x0a\x01a\x12\x05b"),
		"text":                 "hello, world",
	} {
		if got, err := envelope.Decode(raw); !errors.Is(err, envelope.ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// The result shares nothing with what it was read from.
func TestDecodeKeepsNothing(t *testing.T) {
	t.Parallel()
	e := envelope.Envelope{Body: []byte("abc"), ID: "id"}
	raw := string(envelope.Append(nil, &e))
	first, err := envelope.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	first.Body[0] = 'X'
	_ = append(first.Body, "overrun"...)
	second, err := envelope.Decode(raw)
	if err != nil || string(second.Body) != "abc" || second.ID != "id" {
		t.Errorf("%+v, %v", second, err)
	}
}
