package zqtest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// errProtocol marks bytes that are no RESP, as opposed to a broken connection.
var errProtocol = errors.New("zqtest: not RESP")

// maxDepth is how deep replies may nest; Redis itself stays far below.
const maxDepth = 128

// wire cuts a byte stream into whole RESP2 and RESP3 values without taking
// them apart: what comes out is what came in.
type wire struct {
	r     *bufio.Reader
	raw   bytes.Buffer
	words []string
}

func newWire(r io.Reader) *wire { return &wire{r: bufio.NewReader(r)} }

// reply reads one value as a server sends it. The bytes are valid until the
// next call.
func (w *wire) reply() ([]byte, error) {
	w.raw.Reset()
	w.words = nil
	err := w.value(0)
	return w.raw.Bytes(), err
}

// command reads one command as a client sends it: an array of bulk strings, or
// a line of words. No words means a line that the server does not answer. The
// bytes are valid until the next call, the words for ever.
func (w *wire) command() ([]byte, []string, error) {
	first, err := w.r.Peek(1)
	if err != nil {
		return nil, nil, err
	}
	if first[0] == '*' {
		raw, err := w.reply()
		return raw, w.words, err
	}
	line, err := w.r.ReadBytes('\n')
	return line, strings.Fields(string(line)), err
}

// value appends one value of any type to raw.
func (w *wire) value(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%w: nested more than %d deep", errProtocol, maxDepth)
	}
	line, err := w.line()
	if err != nil {
		return err
	}
	switch kind := line[0]; kind {
	case '+', '-', ':', '_', ',', '#', '(':
		return nil
	case '$', '=', '!':
		return w.bulk(line)
	case '*', '~', '>':
		return w.values(line, 1, depth)
	case '%':
		return w.values(line, 2, depth)
	case '|': // attributes stand before the value that they describe
		if err := w.values(line, 2, depth); err != nil {
			return err
		}
		return w.value(depth + 1)
	default:
		return fmt.Errorf("%w: type byte %q", errProtocol, kind)
	}
}

// values appends the elements of an aggregate, each worth the given number of
// values; a null one has none.
func (w *wire) values(line []byte, each, depth int) error {
	n, err := count(line)
	if err != nil {
		return err
	}
	for range n * each {
		if err := w.value(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

// bulk appends a string of known length; a null one has no body.
func (w *wire) bulk(line []byte) error {
	n, err := count(line)
	if err != nil || n < 0 {
		return err
	}
	start := w.raw.Len()
	if _, err := io.CopyN(&w.raw, w.r, int64(n)+2); err != nil {
		return err
	}
	body := w.raw.Bytes()[start:]
	if !bytes.HasSuffix(body, []byte("\r\n")) {
		return fmt.Errorf("%w: string does not end where it says", errProtocol)
	}
	w.words = append(w.words, string(body[:n]))
	return nil
}

// line appends one line and returns it without its end. It is never empty.
func (w *wire) line() ([]byte, error) {
	line, err := w.r.ReadBytes('\n')
	w.raw.Write(line)
	if err != nil {
		return nil, err
	}
	line, ended := bytes.CutSuffix(line, []byte("\r\n"))
	if !ended || len(line) == 0 {
		return nil, fmt.Errorf("%w: line %q", errProtocol, line)
	}
	return line, nil
}

// count reads the number behind a type byte: -1 is null.
func count(line []byte) (int, error) {
	n, err := strconv.ParseInt(string(line[1:]), 10, 31)
	if err != nil || n < -1 {
		return 0, fmt.Errorf("%w: count %q", errProtocol, line)
	}
	return int(n), nil
}

// encodeCommand writes a command as an array of bulk strings.
func encodeCommand(words ...string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
	}
	return b.Bytes()
}
