package zq

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/zqueue/zqueue/zqfx/zq/internal/envelope"
	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// Message is one job as a producer gives it. Only Body matters to most; everything may be left out.
// Messages are values: a producer keeps nothing of them after its call.
type Message struct {
	// ID names the message: at most MaxID bytes of UTF-8 without control characters. A second message with
	// an id that is in the queue, or was acked within the dedupe window, is a duplicate. Empty means a fresh
	// UUIDv7, for which no dedupe record is kept.
	ID string
	// Kind says what it is, such as "order.placed"; handlers are chosen by it. At most MaxKind bytes.
	Kind string
	// Key is the ordering key: messages of one key run one after the other, by (score, enqueue sequence).
	// At most MaxKey bytes, none of them NUL. Empty means no order.
	Key string
	// Route chooses the partition, where key and id should not. Same limits as Key.
	Route string
	// Score orders messages: a lower one runs first. Nil means the enqueue sequence, which is the server's
	// time in microseconds, made unique. Within ±MaxScore.
	Score *int64
	// Headers travel with the message: at most MaxHeaders, MaxHeaderBytes together, valid UTF-8.
	Headers map[string]string
	// ContentType says how Body is encoded, such as "application/json"; empty means raw bytes.
	ContentType string
	// Body comes back byte for byte. At most DefaultMaxBody, or what WithMaxBody allows.
	Body []byte
	// Delay keeps the message back, from 0 to MaxDelay, on the server's clock.
	Delay time.Duration
	// Due keeps the message back until an instant on the server's clock; one in the past means now. Not
	// together with Delay.
	Due time.Time
}

// validate lists everything that is wrong with m.
func (m *Message) validate(maxBody int) []error {
	var faults []error
	add := func(field string, value any, want string) {
		faults = append(faults, invalid("message."+field, value, want))
	}
	if fault := textFault(m.ID, MaxID); fault != "" {
		add("id", fault, fmt.Sprintf("at most %d bytes of UTF-8 without control characters", MaxID))
	}
	if fault := textFault(m.Kind, MaxKind); fault != "" {
		add("kind", fault, fmt.Sprintf("at most %d bytes of UTF-8 without control characters", MaxKind))
	}
	if fault := textFault(m.ContentType, MaxKind); fault != "" {
		add("content_type", fault, fmt.Sprintf("at most %d bytes of UTF-8 without control characters", MaxKind))
	}
	if fault := keyFault(m.Key); fault != "" {
		add("key", fault, fmt.Sprintf("at most %d bytes without NUL", MaxKey))
	}
	if fault := keyFault(m.Route); fault != "" {
		add("route", fault, fmt.Sprintf("at most %d bytes without NUL", MaxKey))
	}
	if m.Score != nil && (*m.Score > MaxScore || *m.Score < -MaxScore) {
		add("score", *m.Score, fmt.Sprintf("%d to %d", -MaxScore, MaxScore))
	}
	if len(m.Body) > maxBody {
		add("body", fmt.Sprintf("%d bytes", len(m.Body)), fmt.Sprintf("at most %d bytes", maxBody))
	}
	faults = append(faults, m.headerFaults()...)
	return append(faults, m.timeFaults()...)
}

func (m *Message) headerFaults() []error {
	var faults []error
	if len(m.Headers) > MaxHeaders {
		faults = append(faults, invalid("message.headers", len(m.Headers), fmt.Sprintf("at most %d", MaxHeaders)))
	}
	size := 0
	for name, value := range m.Headers {
		size += len(name) + len(value)
		if fault := textFault(name, MaxHeaderBytes); fault != "" || name == "" {
			faults = append(faults, invalid("message.headers", "a name that is "+orEmpty(fault), "UTF-8 without control characters"))
		}
		if !utf8.ValidString(value) {
			faults = append(faults, invalid("message.headers", "a value that is not UTF-8", "valid UTF-8"))
		}
	}
	if size > MaxHeaderBytes {
		faults = append(faults, invalid("message.headers", fmt.Sprintf("%d bytes", size), fmt.Sprintf("at most %d bytes", MaxHeaderBytes)))
	}
	return faults
}

func (m *Message) timeFaults() []error {
	var faults []error
	if m.Delay < 0 || m.Delay > MaxDelay {
		faults = append(faults, invalid("message.delay", m.Delay, fmt.Sprintf("0 to %s", MaxDelay)))
	}
	if m.Delay != 0 && !m.Due.IsZero() {
		faults = append(faults, invalid("message.due", "set together with delay", "one of the two"))
	}
	// The server's clock decides when it is due; this clock only tells a mistake from a plan.
	if time.Until(m.Due) > MaxDelay+24*time.Hour {
		faults = append(faults, invalid("message.due", m.Due.UTC().Format(time.RFC3339), fmt.Sprintf("at most %s from now", MaxDelay)))
	}
	return faults
}

// placement turns a valid message into what the script takes. window is the dedupe window for ids that the
// caller chose.
func (m *Message) placement(window time.Duration) script.Placement {
	e := envelope.Envelope{
		Kind: m.Kind, ContentType: m.ContentType, Route: m.Route, Headers: m.Headers, Body: m.Body,
	}
	e.Delay = m.Delay
	if !m.Due.IsZero() {
		e.DueMicros = m.Due.UnixMicro()
	}
	p := script.Placement{ID: m.ID, Key: m.Key, Due: script.At(m.Due)}
	if m.Delay > 0 {
		p.Due = script.After(m.Delay)
	}
	if p.ID == "" {
		p.ID = uuid.Must(uuid.NewV7()).String()
	} else {
		e.Dedupe = window
	}
	if m.Score != nil {
		p.Score = strconv.FormatInt(*m.Score, 10)
	}
	p.Envelope = envelope.Append(make([]byte, 0, envelope.Size(&e)), &e)
	return p
}

// textFault says what is wrong with a name, "" if nothing.
func textFault(s string, most int) string {
	switch {
	case len(s) > most:
		return fmt.Sprintf("%d bytes", len(s))
	case !utf8.ValidString(s):
		return "not UTF-8"
	case strings.ContainsFunc(s, unicode.IsControl):
		return fmt.Sprintf("%q", clip(s, 40))
	}
	return ""
}

func keyFault(s string) string {
	switch {
	case len(s) > MaxKey:
		return fmt.Sprintf("%d bytes", len(s))
	case strings.IndexByte(s, 0) >= 0:
		return fmt.Sprintf("%q", clip(s, 40))
	}
	return ""
}

func orEmpty(s string) string {
	if s == "" {
		return "empty"
	}
	return s
}

// clip shortens s to at most n bytes without cutting a character in two, and drops what is not UTF-8.
func clip(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "")
}

// queueFault checks a queue's name.
func queueFault(name string) error {
	ok := name != "" && len(name) <= MaxQueueName
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		ok = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
	}
	if ok {
		return nil
	}
	return invalid("queue", fmt.Sprintf("%q", clip(name, 40)), fmt.Sprintf("1 to %d of [A-Za-z0-9._-]", MaxQueueName))
}

// microsTime is an instant of the server's clock.
func microsTime(micros int64) time.Time {
	if micros <= 0 || micros == math.MaxInt64 {
		return time.Time{}
	}
	return time.UnixMicro(micros)
}
