package events

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxLine is the longest line that Read takes, in bytes without its end.
const MaxLine = 1 << 20

// clipText bounds MalformedError.Text, so that a file full of garbage does not fill a log.
const clipText = 120

// ErrLineTooLong is wrapped by the MalformedError of a line of more than MaxLine bytes.
var ErrLineTooLong = errors.New("line too long")

// MalformedError says what is wrong with one line. Reading goes on after it.
type MalformedError struct {
	Line   int    // counted from 1, blank lines included
	Reason string // for people; one line
	// Text is the start of the line, as valid UTF-8. It comes from the file, terminal escapes included: print it with %q.
	Text string
	err  error
}

// Error names the line and the reason, not the whole text: a line may hold what does not belong in a log.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("line %d: %s", e.Line, e.Reason)
}

// Unwrap returns ErrLineTooLong or what decoding said.
func (e *MalformedError) Unwrap() error { return e.err }

func malformed(line int, text []byte, err error) *MalformedError {
	// Bytes that no clipped text can need are cut first: a line may be a megabyte of invalid UTF-8.
	head := text[:min(len(text), 2*clipText)]
	return &MalformedError{
		Line:   line,
		Reason: clip(strings.Map(printable, err.Error()), 200),
		Text:   clip(strings.ToValidUTF8(string(head), "\uFFFD"), clipText),
		err:    err,
	}
}

// printable keeps a reason on its line: it may quote a value from the file.
func printable(r rune) rune {
	if unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) {
		return ' '
	}
	return r
}

// clip cuts s to at most limit bytes, between two characters.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
