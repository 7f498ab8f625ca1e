package zqtest

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestWireCutsWholeValues(t *testing.T) {
	t.Parallel()
	values := []string{
		"+OK\r\n", "-ERR no\r\n", ":-1\r\n", "$-1\r\n", "$0\r\n\r\n", "$4\r\n\r\n+x\r\n", "*-1\r\n", "*0\r\n",
		"*2\r\n$1\r\na\r\n*1\r\n:1\r\n", "_\r\n", "#t\r\n", ",1.5\r\n", "(123456789012345678901\r\n",
		"!3\r\nERR\r\n", "=7\r\ntxt:abc\r\n", "%1\r\n+k\r\n%0\r\n", "~2\r\n:1\r\n:2\r\n", ">2\r\n+a\r\n+b\r\n",
		"|1\r\n+ttl\r\n:9\r\n*1\r\n+v\r\n",
	}
	w := newWire(strings.NewReader(strings.Join(values, "")))
	for _, want := range values {
		got, err := w.reply()
		if err != nil || string(got) != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	if _, err := w.reply(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestWireRefusesWhatIsNoRESP(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"HTTP/1.1\r\n", "\r\n", "+OK\n", "$x\r\n", "$-2\r\n", "$99999999999\r\n", "$1\r\nabc\r\n", "*?\r\n",
		strings.Repeat("*1\r\n", maxDepth+2),
	} {
		if _, err := newWire(strings.NewReader(bad)).reply(); !errors.Is(err, errProtocol) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := newWire(strings.NewReader("$5\r\nab")).reply(); err == nil || errors.Is(err, errProtocol) {
		t.Errorf("a broken connection is no breach of protocol: %v", err)
	}
}

// FuzzWire: whatever comes, values are cut out of the input unchanged and in
// order, and commands give the words that were encoded.
func FuzzWire(f *testing.F) {
	f.Add([]byte("*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n+OK\r\n"))
	f.Add([]byte("PING\r\n\r\n%1\r\n+a\r\n|1\r\n:1\r\n:2\r\n_\r\n"))
	f.Add([]byte("$2147483647\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, rest := newWire(bytes.NewReader(data)), data
		for {
			raw, err := w.reply()
			if err != nil {
				break
			}
			if !bytes.HasPrefix(rest, raw) || len(raw) == 0 {
				t.Fatalf("%q is not the start of %q", raw, rest)
			}
			rest = rest[len(raw):]
		}
		words := strings.SplitAfter(string(data), "\n")
		raw, got, err := newWire(bytes.NewReader(encodeCommand(words...))).command()
		if err != nil || !slices.Equal(got, words) || !bytes.Equal(raw, encodeCommand(words...)) {
			t.Fatalf("got %q, %v; want %q", got, err, words)
		}
	})
}
