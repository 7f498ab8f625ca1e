package envelope_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"

	"github.com/zqueue/zqueue/zqfx/zq/internal/envelope"
)

// field is one line of the .proto file.
type field struct {
	kind   string
	number int32
}

// wireFormat is what this package reads and writes by hand.
var wireFormat = map[string]field{
	"sequence":      {"string", 1},
	"key":           {"bytes", 2},
	"id":            {"string", 3},
	"kind":          {"string", 4},
	"content_type":  {"string", 5},
	"headers":       {"map<string, string>", 6},
	"body":          {"bytes", 7},
	"route":         {"bytes", 8},
	"dedupe_micros": {"uint64", 9},
	"delay_micros":  {"uint64", 10},
	"due_micros":    {"uint64", 11},
}

var fieldLine = regexp.MustCompile(`(?m)^\s+(map<string, string>|\w+) (\w+) = (\d+);$`)

// The published .proto file says the same.
func TestProtoFile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../proto/zq/v1/envelope.proto")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]field{}
	for _, m := range fieldLine.FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.ParseInt(m[3], 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		got[m[2]] = field{m[1], int32(n)}
	}
	if diff := cmp.Diff(wireFormat, got, cmp.AllowUnexported(field{})); diff != "" {
		t.Errorf("envelope.proto (-want +got):\n%s", diff)
	}
	for _, line := range []string{`syntax = "proto3";`, "package zq.v1;", "message Envelope {"} {
		if !strings.Contains(string(text), "\n"+line) && !strings.HasPrefix(string(text), line) {
			t.Errorf("no line %q", line)
		}
	}
	if n := strings.Count(string(text), " = ") - 2; n != len(got) { // two are syntax and go_package
		t.Errorf("%d fields in the file, %d understood by this test", n, len(got))
	}
}

var scalar = map[string]descriptorpb.FieldDescriptorProto_Type{
	"string": descriptorpb.FieldDescriptorProto_TYPE_STRING,
	"bytes":  descriptorpb.FieldDescriptorProto_TYPE_BYTES,
	"uint64": descriptorpb.FieldDescriptorProto_TYPE_UINT64,
}

func fieldProto(name string, f field) *descriptorpb.FieldDescriptorProto {
	d := &descriptorpb.FieldDescriptorProto{
		Name: &name, Number: &f.number, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
	}
	if kind, ok := scalar[f.kind]; ok {
		d.Type = kind.Enum()
		return d
	}
	d.Type = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum()
	d.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	d.TypeName = proto.String(".zq.v1.Envelope.HeadersEntry")
	return d
}

// descriptor builds zq.v1.Envelope as protoc would.
func descriptor(t *testing.T) protoreflect.MessageDescriptor {
	t.Helper()
	message := &descriptorpb.DescriptorProto{
		Name: proto.String("Envelope"),
		NestedType: []*descriptorpb.DescriptorProto{{
			Name:    proto.String("HeadersEntry"),
			Field:   []*descriptorpb.FieldDescriptorProto{fieldProto("key", field{"string", 1}), fieldProto("value", field{"string", 2})},
			Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
		}},
	}
	for _, name := range slices.Sorted(maps.Keys(wireFormat)) {
		message.Field = append(message.Field, fieldProto(name, wireFormat[name]))
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("envelope.proto"), Package: proto.String("zq.v1"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{message},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file.Messages().ByName("Envelope")
}

// viaProtobuf is e as the library of every other language holds it.
func viaProtobuf(d protoreflect.MessageDescriptor, e *envelope.Envelope) *dynamicpb.Message {
	m := dynamicpb.NewMessage(d)
	set := func(name string, v protoreflect.Value) { m.Set(d.Fields().ByName(protoreflect.Name(name)), v) }
	set("sequence", protoreflect.ValueOfString(e.Sequence))
	set("key", protoreflect.ValueOfBytes([]byte(e.Key)))
	set("id", protoreflect.ValueOfString(e.ID))
	set("kind", protoreflect.ValueOfString(e.Kind))
	set("content_type", protoreflect.ValueOfString(e.ContentType))
	set("body", protoreflect.ValueOfBytes(e.Body))
	set("route", protoreflect.ValueOfBytes([]byte(e.Route)))
	set("dedupe_micros", protoreflect.ValueOfUint64(uint64(e.Dedupe.Microseconds())))
	headers := m.Mutable(d.Fields().ByName("headers")).Map()
	for name, value := range e.Headers {
		headers.Set(protoreflect.ValueOfString(name).MapKey(), protoreflect.ValueOfString(value))
	}
	return m
}

// drawEnvelope makes any envelope whose texts are UTF-8, as producers guarantee.
func drawEnvelope(t *rapid.T) envelope.Envelope {
	text := rapid.String()
	bytes := rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })
	e := envelope.Envelope{
		ID: text.Draw(t, "id"), Kind: text.Draw(t, "kind"), ContentType: text.Draw(t, "content type"),
		Route: bytes.Draw(t, "route"), Headers: rapid.MapOf(text, text).Draw(t, "headers"),
		Dedupe: time.Duration(rapid.Int64Range(0, int64(1<<40)).Draw(t, "dedupe")) * time.Microsecond,
	}
	if len(e.Headers) == 0 {
		e.Headers = nil
	}
	if body := bytes.Draw(t, "body"); body != "" {
		e.Body = []byte(body)
	}
	return e
}

// What this package writes protobuf reads as the same, and the other way round.
func TestConformsToProtobuf(t *testing.T) {
	t.Parallel()
	d := descriptor(t)
	rapid.Check(t, func(t *rapid.T) {
		e := drawEnvelope(t)
		theirs, ours := viaProtobuf(d, &e), dynamicpb.NewMessage(d)
		if err := proto.Unmarshal(envelope.Append(nil, &e), ours); err != nil || len(ours.GetUnknown()) > 0 || !proto.Equal(theirs, ours) {
			t.Fatalf("protobuf reads ours as %v: %v", ours, err)
		}
		e.Sequence = rapid.StringMatching(`[0-9a-f]{14}`).Draw(t, "sequence")
		e.Key = string(rapid.SliceOf(rapid.Byte()).Draw(t, "key"))
		raw, err := proto.Marshal(viaProtobuf(d, &e))
		if err != nil {
			t.Fatal(err)
		}
		got, err := envelope.Decode(string(raw))
		if diff := cmp.Diff(e, got); err != nil || diff != "" {
			t.Fatalf("we read theirs as (-want +got): %v\n%s", err, diff)
		}
	})
}

// On any bytes that protobuf takes, both read the same fields; what one refuses the other does not make up.
func FuzzConformsToProtobuf(f *testing.F) {
	e := full()
	f.Add(envelope.Append(nil, &e))
	f.Add(append(unknown(), envelope.Append(unknown(), &e)...))
	f.Add([]byte("\x32\x04\x12\x02ab\x32\x00\x32\x06\x18\x07\x0a\x02xy"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d := descriptor(t)
		theirs, ok := reference(d, raw)
		if !ok {
			return // bad UTF-8 is no reason for us to refuse what is stored
		}
		got, err := envelope.Decode(string(raw))
		if err != nil {
			t.Fatalf("protobuf reads %v, we: %v", theirs, err)
		}
		ours := viaProtobuf(d, &got)
		theirs.SetUnknown(nil)
		micros := d.Fields().ByName("dedupe_micros")
		if theirs.Get(micros).Uint() > ours.Get(micros).Uint() {
			theirs.Set(micros, ours.Get(micros)) // beyond a Duration: clipped
		}
		if !proto.Equal(theirs, ours) {
			t.Errorf("protobuf reads %v, we %v", theirs, ours)
		}
	})
}

// reference is what protobuf reads. Its reader by reflection panics on some damaged map entries.
func reference(d protoreflect.MessageDescriptor, raw []byte) (m *dynamicpb.Message, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	m = dynamicpb.NewMessage(d)
	return m, proto.Unmarshal(raw, m) == nil
}
