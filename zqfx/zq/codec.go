package zq

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"google.golang.org/protobuf/proto"
)

// Codec turns payloads into bodies and back. Its content type is stored with each message, and a body is
// decoded by what is stored, so that a queue can change codecs while messages wait. Must be safe for
// concurrent use.
type Codec interface {
	ContentType() string
	Marshal(v any) ([]byte, error)
	// Unmarshal reads into v, a pointer to the payload's type.
	Unmarshal(data []byte, v any) error
}

// JSON is the default codec, encoding/json.
type JSON struct{}

// ContentType is application/json.
func (JSON) ContentType() string { return "application/json" }

// Marshal encodes v with encoding/json.
func (JSON) Marshal(v any) ([]byte, error) { return json.Marshal(v) }

// Unmarshal decodes into v with encoding/json.
func (JSON) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

// Proto encodes protobuf messages. A kind's payload is the pointer type: NewKind[*pb.Order].
type Proto struct{}

// ContentType is application/protobuf.
func (Proto) ContentType() string { return "application/protobuf" }

// Marshal encodes v, which must be a proto.Message.
func (Proto) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no proto.Message", v)
	}
	return proto.Marshal(m)
}

// Unmarshal decodes into a proto.Message, or into a pointer to one, which it allocates.
func (Proto) Unmarshal(data []byte, v any) error {
	if m, ok := v.(proto.Message); ok {
		return proto.Unmarshal(data, m)
	}
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.Elem().Kind() != reflect.Pointer {
		return fmt.Errorf("%T is no proto.Message", v)
	}
	fresh := reflect.New(target.Elem().Type().Elem())
	m, ok := fresh.Interface().(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no proto.Message", v)
	}
	if err := proto.Unmarshal(data, m); err != nil {
		return err
	}
	target.Elem().Set(fresh)
	return nil
}

// Raw passes []byte and string payloads through.
type Raw struct{}

// ContentType is empty: the body is what it is.
func (Raw) ContentType() string { return "" }

// Marshal takes []byte or string.
func (Raw) Marshal(v any) ([]byte, error) {
	switch v := v.(type) {
	case []byte:
		return v, nil
	case string:
		return []byte(v), nil
	}
	return nil, fmt.Errorf("%T is neither []byte nor string", v)
}

// Unmarshal fills a *[]byte or *string.
func (Raw) Unmarshal(data []byte, v any) error {
	switch v := v.(type) {
	case *[]byte:
		*v = data
	case *string:
		*v = string(data)
	default:
		return fmt.Errorf("%T is neither *[]byte nor *string", v)
	}
	return nil
}

// mediaType drops parameters such as a charset.
func mediaType(contentType string) string {
	base, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(base))
}
