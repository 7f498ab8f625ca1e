package events

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// utf8BOM is what some spreadsheets put before the first line.
var utf8BOM = []byte("\xef\xbb\xbf")

// Read yields the events of r in their order. A line that is not a valid event is yielded as a
// *MalformedError and reading goes on; any other error comes from r and is the last thing yielded.
// Blank lines are passed over, lines may end in CRLF, a UTF-8 byte order mark at the start is dropped.
// Memory is bounded by MaxLine, not by the size of r.
func Read(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		in := lines{r: bufio.NewReaderSize(r, 64<<10)}
		for {
			text, err := in.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil && !errors.Is(err, ErrLineTooLong) {
				yield(Event{}, fmt.Errorf("read line %d: %w", in.number, err))
				return
			}
			if err == nil && len(bytes.TrimSpace(text)) == 0 {
				continue
			}
			if !yield(event(in.number, text, err)) {
				return
			}
		}
	}
}

func event(number int, text []byte, err error) (Event, error) {
	if err != nil {
		return Event{}, malformed(number, text, err)
	}
	e, err := decode(text)
	if err != nil {
		return Event{}, malformed(number, text, err)
	}
	return e, nil
}

type lines struct {
	r      *bufio.Reader
	buf    []byte
	number int
}

// next returns the next line without its end, valid until the next call. Of a line over MaxLine it returns
// the start and ErrLineTooLong, and has passed over the rest. A line cut short by a read error is not returned.
func (l *lines) next() ([]byte, error) {
	l.number++
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		// Two bytes more than the limit may be the line's end; beyond that only the fact counts.
		room := MaxLine + len("\r\n") + 1 - len(l.buf)
		if l.number == 1 {
			room += len(utf8BOM)
		}
		l.buf = append(l.buf, part[:min(len(part), room)]...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(l.buf) > 0, err == nil:
			return l.trimmed()
		default:
			return nil, err
		}
	}
}

func (l *lines) trimmed() ([]byte, error) {
	text := l.buf
	if l.number == 1 {
		text = bytes.TrimPrefix(text, utf8BOM)
	}
	text = bytes.TrimSuffix(text, []byte("\n"))
	text = bytes.TrimSuffix(text, []byte("\r"))
	if len(text) > MaxLine {
		return text, fmt.Errorf("%w: more than %d bytes", ErrLineTooLong, MaxLine)
	}
	return text, nil
}
