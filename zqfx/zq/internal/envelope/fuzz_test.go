package envelope_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/zqueue/zqueue/zqfx/zq/internal/envelope"
)

// FuzzDecode takes any bytes: it must not panic, and what it accepts must survive being written again.
func FuzzDecode(f *testing.F) {
	e := full()
	whole := envelope.Append(nil, &e)
	for _, seed := range [][]byte{
		nil, whole, whole[:len(whole)/2], unknown(), append(unknown(), whole...), []byte("hello"), bytes.Repeat([]byte{0x0b}, 20_000),
		{0x48, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, {0x32, 0x02, 0x0a, 0x00},
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		first, err := envelope.Decode(string(raw))
		if !bytes.Equal(before, raw) {
			t.Error("the input was changed")
		}
		if err != nil {
			if !errors.Is(err, envelope.ErrMalformed) || !cmp.Equal(first, envelope.Envelope{}) {
				t.Errorf("%+v with %v", first, err)
			}
			return
		}
		second, err := envelope.Decode(string(envelope.Append(nil, &first)))
		first.Sequence, first.Key = "", "" // the script's
		if len(first.Body) == 0 {
			first.Body = nil // an empty one is not written
		}
		if diff := cmp.Diff(first, second); err != nil || diff != "" {
			t.Errorf("%v (-first +second):\n%s", err, diff)
		}
	})
}

// FuzzRoundTrip writes any envelope, with fields of the future around it, and reads it back.
func FuzzRoundTrip(f *testing.F) {
	f.Add("id", "kind", "type", "route", "name", "value", allBytes(), int64(time.Hour), uint32(100), []byte("later"))
	f.Add("", "", "", "", "", "", []byte(nil), int64(0), uint32(10), []byte(nil))
	f.Add(strings.Repeat("i", 256), "\xff", "\x00", "a|b", "ü", "\r\n", []byte{0}, int64(-1), uint32(1<<29-1), allBytes())
	f.Fuzz(func(t *testing.T, id, kind, contentType, route, name, value string, body []byte, dedupe int64, number uint32, later []byte) {
		e := envelope.Envelope{
			ID: id, Kind: kind, ContentType: contentType, Route: route, Headers: map[string]string{name: value}, Body: body,
			Dedupe: max(0, time.Duration(dedupe)).Truncate(time.Microsecond),
		}
		if len(body) == 0 {
			e.Body = nil
		}
		raw := envelope.Append(nil, &e)
		if size := envelope.Size(&e); size < len(raw) {
			t.Errorf("Size says at most %d, there are %d", size, len(raw))
		}
		n := protowire.Number(10 + number%(1<<29-10))
		future := protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), later)
		future = protowire.AppendVarint(protowire.AppendTag(future, n, protowire.VarintType), uint64(number))
		for _, stored := range [][]byte{raw, append(bytes.Clone(future), raw...), append(bytes.Clone(raw), future...)} {
			got, err := envelope.Decode(string(stored))
			if diff := cmp.Diff(e, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		}
	})
}
