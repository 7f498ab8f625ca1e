// Package envelope reads and writes the stored form of a message, zq.v1.Envelope.
//
// It is written by hand over protowire because it runs once or twice a message: generated code with
// reflection costs several times as much. A test reads and writes the same bytes through the descriptor.
package envelope

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of zq.v1.Envelope.
const (
	fieldSequence    protowire.Number = 1
	fieldKey         protowire.Number = 2
	fieldID          protowire.Number = 3
	fieldKind        protowire.Number = 4
	fieldContentType protowire.Number = 5
	fieldHeaders     protowire.Number = 6
	fieldBody        protowire.Number = 7
	fieldRoute       protowire.Number = 8
	fieldDedupe      protowire.Number = 9
	fieldDelay       protowire.Number = 10
	fieldDue         protowire.Number = 11
)

// ErrMalformed marks bytes that are no envelope.
var ErrMalformed = errors.New("malformed envelope")

// Envelope is the decoded form. Sequence and Key are written by the enqueue script, so Append leaves them out.
type Envelope struct {
	Sequence, Key, ID, Kind, ContentType, Route string
	Headers                                     map[string]string
	Body                                        []byte
	Dedupe                                      time.Duration // how long the id is remembered after the ack
	Delay                                       time.Duration // from the enqueueing until it was due first
	DueMicros                                   int64         // or the instant, since 1970
}

// Append encodes what the producer writes: everything but the sequence and the key. Equal envelopes have
// equal bytes.
func Append(b []byte, e *Envelope) []byte {
	b = appendString(b, fieldID, e.ID)
	b = appendString(b, fieldKind, e.Kind)
	b = appendString(b, fieldContentType, e.ContentType)
	b = appendHeaders(b, e.Headers)
	b = appendString(b, fieldRoute, e.Route)
	if e.Dedupe > 0 {
		b = appendNumber(b, fieldDedupe, max(1, e.Dedupe.Microseconds()))
	}
	b = appendNumber(b, fieldDelay, e.Delay.Microseconds())
	b = appendNumber(b, fieldDue, e.DueMicros)
	if len(e.Body) > 0 {
		b = protowire.AppendTag(b, fieldBody, protowire.BytesType)
		b = protowire.AppendBytes(b, e.Body)
	}
	return b
}

// Size is an upper bound of what Append adds.
func Size(e *Envelope) int {
	n := len(e.ID) + len(e.Kind) + len(e.ContentType) + len(e.Route) + len(e.Body) + 64
	for name, value := range e.Headers {
		n += len(name) + len(value) + 16
	}
	return n
}

func appendString(b []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendString(b, s)
}

func appendNumber(b []byte, field protowire.Number, v int64) []byte {
	if v <= 0 {
		return b
	}
	b = protowire.AppendTag(b, field, protowire.VarintType)
	return protowire.AppendVarint(b, uint64(v))
}

func appendHeaders(b []byte, headers map[string]string) []byte {
	if len(headers) == 0 {
		return b
	}
	names := make([]string, 0, len(headers))
	for name := range headers {
		names = append(names, name)
	}
	slices.Sort(names)
	var entry []byte
	for _, name := range names {
		entry = protowire.AppendTag(entry[:0], 1, protowire.BytesType)
		entry = protowire.AppendString(entry, name)
		entry = protowire.AppendTag(entry, 2, protowire.BytesType)
		entry = protowire.AppendString(entry, headers[name])
		b = protowire.AppendTag(b, fieldHeaders, protowire.BytesType)
		b = protowire.AppendBytes(b, entry)
	}
	return b
}

// Decode reads a stored envelope. Fields it does not know are passed over. The result shares no memory with raw.
func Decode(raw string) (Envelope, error) {
	var e Envelope
	b := []byte(raw)
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return Envelope{}, malformed(n)
		}
		b = b[n:]
		switch kind {
		case protowire.BytesType:
			v, n := protowire.ConsumeBytes(b)
			if n < 0 {
				return Envelope{}, malformed(n)
			}
			if err := e.set(field, v); err != nil {
				return Envelope{}, err
			}
			b = b[n:]
		case protowire.VarintType:
			v, n := protowire.ConsumeVarint(b)
			if n < 0 {
				return Envelope{}, malformed(n)
			}
			e.setNumber(field, v)
			b = b[n:]
		default:
			n := protowire.ConsumeFieldValue(field, kind, b)
			if n < 0 {
				return Envelope{}, malformed(n)
			}
			b = b[n:]
		}
	}
	return e, nil
}

// set keeps v, which is part of Decode's own copy.
func (e *Envelope) set(field protowire.Number, v []byte) error {
	switch field {
	case fieldSequence:
		e.Sequence = string(v)
	case fieldKey:
		e.Key = string(v)
	case fieldID:
		e.ID = string(v)
	case fieldKind:
		e.Kind = string(v)
	case fieldContentType:
		e.ContentType = string(v)
	case fieldRoute:
		e.Route = string(v)
	case fieldBody:
		e.Body = v[:len(v):len(v)]
	case fieldHeaders:
		name, value, err := decodeHeader(v)
		if err != nil {
			return err
		}
		if e.Headers == nil {
			e.Headers = make(map[string]string)
		}
		e.Headers[name] = value
	}
	return nil
}

func (e *Envelope) setNumber(field protowire.Number, v uint64) {
	switch field {
	case fieldDedupe:
		e.Dedupe = micros(v)
	case fieldDelay:
		e.Delay = micros(v)
	case fieldDue:
		e.DueMicros = micros(v).Microseconds()
	}
}

func decodeHeader(b []byte) (name, value string, err error) {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return "", "", malformed(n)
		}
		b = b[n:]
		if kind != protowire.BytesType {
			n := protowire.ConsumeFieldValue(field, kind, b)
			if n < 0 {
				return "", "", malformed(n)
			}
			b = b[n:]
			continue
		}
		v, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return "", "", malformed(n)
		}
		switch field {
		case 1:
			name = string(v)
		case 2:
			value = string(v)
		}
		b = b[n:]
	}
	return name, value, nil
}

// maxMicros keeps a damaged record from overflowing a Duration.
const maxMicros = uint64(1<<63-1) / uint64(time.Microsecond)

func micros(v uint64) time.Duration {
	return time.Duration(min(v, maxMicros)) * time.Microsecond
}

func malformed(n int) error {
	return fmt.Errorf("%w: %w", ErrMalformed, protowire.ParseError(n))
}
