package events

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

const line = `{"order_id":"SO-1","customer":"Ann","sequence":1,"kind":"paid",` +
	`"amount":{"minor":1290,"currency":"EUR"},"at":"2025-11-28T10:00:00+01:00"}`

// outcome is what Read made of one line: "ok", or "<line>: <reason>".
func outcomes(r io.Reader) []string {
	var all []string
	for _, err := range Read(r) {
		var bad *MalformedError
		switch {
		case err == nil:
			all = append(all, "ok")
		case errors.As(err, &bad):
			all = append(all, strconv.Itoa(bad.Line)+": "+bad.Reason)
		default:
			all = append(all, "error: "+err.Error())
		}
	}
	return all
}

func TestReadLines(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"only a byte order mark", "\xef\xbb\xbf", nil},
		{"no end of line", line, []string{"ok"}},
		{"byte order mark and CRLF", "\xef\xbb\xbf" + line + "\r\n" + line + "\r\n", []string{"ok", "ok"}},
		{"blank lines count", "\n \t\r\n" + line + "\n\nx\n", []string{"ok", "5: not JSON: invalid character 'x' looking for beginning of value"}},
		{"byte order mark later", line + "\n\xef\xbb\xbf" + line, []string{"ok", "2: not JSON: invalid character 'ï' looking for beginning of value"}},
		{"no comments", "# export\n" + line, []string{"1: not JSON: invalid character '#' looking for beginning of value", "ok"}},
		{"bad line in the midst", line + "\n" + line[:50] + "\n" + line, []string{"ok", "2: not JSON: unexpected end of JSON input", "ok"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			// One byte a read must make no difference.
			for _, r := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in))} {
				if have := outcomes(r); strings.Join(have, "\n") != strings.Join(tt.want, "\n") {
					t.Errorf("have %q\nwant %q", have, tt.want)
				}
			}
		})
	}
}

func TestReadIsStrict(t *testing.T) {
	t.Parallel()
	swap := func(old, with string) string { return strings.Replace(line, old, with, 1) }
	tests := []struct{ name, in, want string }{
		{"text for a number", swap(`"sequence":1`, `"sequence":"1"`), `field sequence: want a whole number, have "1"`},
		{"fraction", swap(`"sequence":1`, `"sequence":1.5`), "field sequence: want a whole number, have 1.5"},
		{"number beyond int64", swap("1290", "99999999999999999999"), "field amount.minor: want a whole number"},
		{"float amount", swap("1290", "12.90"), "field amount.minor: want a whole number, have 12.90"},
		{"flat amount", swap(`{"minor":1290,"currency":"EUR"}`, "1290"), "field amount: not a JSON object"},
		{"amount without currency", swap(`,"currency":"EUR"`, ""), "field amount.currency is missing"},
		{"missing", swap(`"customer":"Ann",`, ""), "field customer is missing"},
		{"null", swap(`"Ann"`, "null"), "field customer is null"},
		{"another spelling", swap(`"kind"`, `"Kind"`), "field kind is missing"},
		{"twice", swap(`"kind":"paid"`, `"kind":"paid","kind":"refunded"`), `field "kind" is given twice`},
		{"number for a text", swap(`"Ann"`, "7"), "field customer: want a text, have 7"},
		{"bad time", swap("2025-11-28T10:00:00+01:00", "28.11.2025"), "field at: want a time as"},
		{"time without a zone", swap("+01:00", ""), "field at: want a time as"},
		{"day that is not", swap("11-28", "02-30"), "field at: want a time as"},
		{"Latin-1", swap("Ann", "M\xfcller"), "not UTF-8"},
		{"half an emoji", swap("Ann", `\ud83d`), "replacement character"},
		{"escaped NUL", swap("Ann", `A\u0000`), "control character U+0000"},
		{"raw control character", swap("Ann", "A\x01"), "invalid character '\\x01' in string literal"},
		{"array", "[" + line + "]", "not a JSON object"},
		{"two objects", line + line, "not JSON: invalid character '{' after top-level value"},
		{"CSV", "SO-1;Ann;3;paid;12.90;EUR", "not JSON"},
		{"deep nesting", strings.Repeat("[", 20_000), "not JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			have := outcomes(strings.NewReader(tt.in))
			if len(have) != 1 || !strings.HasPrefix(have[0], "1: ") || !strings.Contains(have[0], tt.want) {
				t.Errorf("have %q, want %q", have, tt.want)
			}
		})
	}
	if have := outcomes(strings.NewReader(swap(`"kind"`, `"channel":{"shop":[1,{"a":null}]},"kind"`))); have[0] != "ok" {
		t.Errorf("a field from a newer shop: %q", have)
	}
}

func TestReadLongLines(t *testing.T) {
	t.Parallel()
	padded := func(n int) string { return strings.Repeat(" ", n-len(line)) + line }
	for _, end := range []string{"\n", "\r\n"} {
		in := "\xef\xbb\xbf" + padded(MaxLine) + end + padded(MaxLine) + end + padded(MaxLine+1) + end +
			strings.Repeat("x", 3*MaxLine+7) + end + line
		want := []string{"ok", "ok", "3: line too long: more than 1048576 bytes", "4: line too long: more than 1048576 bytes", "ok"}
		if have := outcomes(strings.NewReader(in)); strings.Join(have, "\n") != strings.Join(want, "\n") {
			t.Errorf("end %q: have %q", end, have)
		}
	}
	in := "\xef\xbb\xbf" + padded(MaxLine+1) + "\n" +
		strings.Repeat(" ", MaxLine) + "\rb\n" // a CR inside is not the line's end
	want := "1: line too long: more than 1048576 bytes\n2: line too long: more than 1048576 bytes"
	if have := outcomes(strings.NewReader(in)); strings.Join(have, "\n") != want {
		t.Errorf("have %q", have)
	}
	for _, err := range Read(strings.NewReader(strings.Repeat("\xff", MaxLine+1))) {
		var bad *MalformedError
		if !errors.As(err, &bad) || !errors.Is(err, ErrLineTooLong) {
			t.Fatalf("not the typed error: %v", err)
		}
		if len(bad.Text) > clipText || !utf8.ValidString(bad.Text) {
			t.Errorf("text of %d bytes: %q", len(bad.Text), bad.Text)
		}
	}
}

func TestReadErrorEndsReading(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk gone")
	r := io.MultiReader(strings.NewReader(line+"\n"+line[:20]), iotest.ErrReader(broken))
	var last error
	n := 0
	for _, err := range Read(r) {
		n, last = n+1, err
	}
	var bad *MalformedError
	if n != 2 || !errors.Is(last, broken) || errors.As(last, &bad) {
		t.Errorf("%d yields, the last %v: a line cut by the reader is not a malformed line", n, last)
	}
}

func TestReadStopsWhenAsked(t *testing.T) {
	t.Parallel()
	for _, err := range Read(strings.NewReader(line + "\n" + line + "\n")) {
		if err != nil {
			t.Error(err)
		}
		break
	}
}

func TestEventSurvivesJSON(t *testing.T) {
	t.Parallel()
	e := valid()
	e.Customer, e.GatewayTimeouts = "<b>Zoë</b> & \u200fשרה", 2
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	for have, err := range Read(strings.NewReader(string(text))) {
		if err != nil || have != e {
			t.Errorf("have %+v, %v; want %+v", have, err, e)
		}
	}
}
