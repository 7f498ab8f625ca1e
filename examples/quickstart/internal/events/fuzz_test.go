package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzRead(f *testing.F) {
	f.Add([]byte(line + "\r\n" + line))
	f.Add([]byte("\xef\xbb\xbf\n" + line[:40] + "\n{}\n[]\nnull"))
	f.Add([]byte(strings.Replace(line, "Ann", `\ud800\u202e`, 1)))
	f.Add([]byte(strings.Replace(line, `"kind"`, `"kind":1,"kind"`, 1)))
	f.Add([]byte("\xff\xfe{\x00\n\x00"))
	f.Fuzz(func(t *testing.T, in []byte) {
		last, n := 0, 0
		for e, err := range Read(bytes.NewReader(in)) {
			n++
			if err != nil {
				last = checkMalformed(t, err, last)
				continue
			}
			checkEvent(t, e)
		}
		if n > bytes.Count(in, []byte("\n"))+1 {
			t.Errorf("%d yields from %q", n, in)
		}
	})
}

func checkMalformed(t *testing.T, err error, last int) int {
	var bad *MalformedError
	if !errors.As(err, &bad) {
		t.Fatalf("not a *MalformedError: %v", err)
	}
	if bad.Line <= last {
		t.Errorf("line %d after line %d", bad.Line, last)
	}
	if bad.Reason == "" || len(bad.Reason) > 200 || strings.ContainsAny(bad.Reason, "\r\n\x1b") {
		t.Errorf("reason %q", bad.Reason)
	}
	if len(bad.Text) > clipText || !utf8.ValidString(bad.Text) {
		t.Errorf("text %q", bad.Text)
	}
	return bad.Line
}

// checkEvent demands that what was read can be queued and read again as the same event.
func checkEvent(t *testing.T, e Event) {
	if err := e.Validate(); err != nil {
		t.Errorf("yielded an invalid event: %v", err)
	}
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatalf("cannot be written again: %v", err)
	}
	count := 0
	for again, err := range Read(bytes.NewReader(text)) {
		count++
		if err != nil || again.ID() != e.ID() || !again.At.Equal(e.At) || again.Customer != e.Customer || again.Amount != e.Amount {
			t.Errorf("%s reads as %+v, %v", text, again, err)
		}
	}
	if count != 1 {
		t.Errorf("%s reads as %d events", text, count)
	}
}
