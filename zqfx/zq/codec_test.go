package zq_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/zqueue/zqueue/zqfx/zq"
)

func TestProtoCodec(t *testing.T) {
	t.Parallel()
	fields, err := structpb.NewStruct(map[string]any{"name": "Zoë", "tags": []any{"a", nil, 1.5}, "ok": true})
	if err != nil {
		t.Fatal(err)
	}
	codec := zq.Proto{}
	for _, m := range []proto.Message{wrapperspb.String("order-1"), wrapperspb.Bytes([]byte{0, 255}), fields, &structpb.Struct{}} {
		body, err := codec.Marshal(m)
		if err != nil {
			t.Fatalf("%T: %v", m, err)
		}
		same := m.ProtoReflect().New().Interface()
		if err := codec.Unmarshal(body, same); err != nil || !proto.Equal(m, same) {
			t.Errorf("%T into a message: %v, %v", m, same, err)
		}
	}
	body, err := codec.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	var allocated *structpb.Struct
	if err := codec.Unmarshal(body, &allocated); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fields, allocated, protocmp.Transform()); diff != "" {
		t.Errorf("into a pointer to nil (-want +got):\n%s", diff)
	}
}

func TestProtoCodecRefuses(t *testing.T) {
	t.Parallel()
	codec := zq.Proto{}
	for _, v := range []any{nil, "text", 7, struct{}{}, wrapperspb.StringValue{}} {
		if body, err := codec.Marshal(v); err == nil {
			t.Errorf("%T is encoded as %q", v, body)
		}
	}
	var text string
	var number *int
	var message *wrapperspb.StringValue
	for _, v := range []any{nil, text, &text, number, &number, message, &struct{}{}} {
		if v == message {
			continue // a typed nil message panics in protobuf; a kind catches it
		}
		if err := codec.Unmarshal([]byte{}, v); err == nil {
			t.Errorf("decoded into a %T", v)
		}
	}
	if err := codec.Unmarshal([]byte{0xff, 0xff}, &message); err == nil || message != nil {
		t.Errorf("garbage decoded: %v, %v", message, err)
	}
}

func TestRawCodec(t *testing.T) {
	t.Parallel()
	codec := zq.Raw{}
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, v := range []any{all, string(all)} {
		body, err := codec.Marshal(v)
		if err != nil || string(body) != string(all) {
			t.Errorf("%T is encoded as %q: %v", v, body, err)
		}
	}
	var b []byte
	var s string
	if err := errors.Join(codec.Unmarshal(all, &b), codec.Unmarshal(all, &s)); err != nil || s != string(all) || string(b) != s {
		t.Errorf("decoded %q and %q: %v", b, s, err)
	}
	var n int
	if err := codec.Unmarshal(all, &n); err == nil {
		t.Error("decoded into an int")
	}
	if _, err := codec.Marshal(n); err == nil {
		t.Error("an int is encoded")
	}
	if zq.Raw.ContentType(zq.Raw{}) != "" {
		t.Error("raw bytes have a content type")
	}
}
