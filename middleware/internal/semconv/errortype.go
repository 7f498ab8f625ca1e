package semconv

import (
	"context"
	"errors"
	"io"
	"net"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Classes of errors that are not in classes below.
const (
	ErrorPanic       = "panic"
	ErrorLeaseLost   = "lease_lost"
	ErrorEffect      = "effect"
	ErrorReplication = "replication"
	ErrorNetTimeout  = "net_timeout"
	ErrorOther       = "_OTHER" // the conventions' word for what has no class
)

// class is what a condition is called.
type class struct {
	is   error
	name string
}

// classes are asked in this order: what is more exact comes first.
var classes = []class{
	{zq.ErrLeaseLost, ErrorLeaseLost},
	{zq.ErrTimeout, "timeout"},
	{zq.ErrShutdown, "shutdown"},
	{zq.ErrCancelled, "cancelled"},
	{zq.ErrStoreFull, "store_full"},
	{zq.ErrClosed, "closed"},
	{zq.ErrInvalid, "invalid"},
	{zq.ErrNewerLayout, "newer_layout"},
	{zq.ErrWrongType, "wrong_type"},
	{zq.ErrOldServer, "old_server"},
	{zq.ErrNotFound, "not_found"},
	{zq.ErrLive, "live"},
	{zq.ErrTooLarge, "too_large"},
	{zq.ErrOutcomeUnknown, "outcome_unknown"},
	{context.DeadlineExceeded, "deadline_exceeded"},
	{context.Canceled, "context_canceled"},
	{io.EOF, "eof"},
	{io.ErrUnexpectedEOF, "eof"},
	{net.ErrClosed, "net_closed"},
}

// How deep and how long the name of an error may be.
const (
	maxDepth    = 32
	maxTypeName = 120
)

// ErrorType is the class of an error: the library's word for its conditions, or else the name of the Go type that
// is behind the usual wrappers, or ErrorOther. So there are as many as the program has error types. It never is an
// error's text, and an error whose methods panic is ErrorOther. It is "" for nil.
func ErrorType(err error) (name string) {
	if err == nil {
		return ""
	}
	defer func() {
		if recover() != nil {
			name = ErrorOther
		}
	}()
	var (
		panicked   *zq.PanicError
		effect     *zq.EffectError
		replicated *zq.ReplicationError
		network    net.Error
	)
	switch {
	case errors.As(err, &panicked):
		return ErrorPanic
	case errors.As(err, &effect):
		return ErrorEffect
	case errors.As(err, &replicated):
		return ErrorReplication
	}
	for _, c := range classes {
		if errors.Is(err, c.is) {
			return c.name
		}
	}
	if errors.As(err, &network) && network.Timeout() {
		return ErrorNetTimeout
	}
	return typeName(err)
}

// typeName is the type of the first error that is no wrapper.
func typeName(err error) string {
	for range maxDepth {
		if err == nil {
			return ErrorOther
		}
		t := reflect.TypeOf(err)
		if !wrapper(t) {
			return nameOf(t)
		}
		err = inner(err)
	}
	return ErrorOther
}

// wrapper tells the types that only say something around an error: of fmt and errors, of backoff, and those by
// which a handler tells zq what to do.
func wrapper(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch pkg := t.PkgPath(); {
	case pkg == "fmt", pkg == "errors":
		return true
	case strings.HasPrefix(pkg, "github.com/cenkalti/backoff/"):
		return t.Name() == "PermanentError"
	case strings.HasSuffix(pkg, "/zqfx/zq"):
		first, _ := utf8.DecodeRuneInString(t.Name())
		return unicode.IsLower(first)
	}
	return false
}

// inner is the next error, the first of several.
func inner(err error) error {
	switch e := err.(type) { //nolint:errorlint // one step at a time is what is wanted
	case interface{ Unwrap() error }:
		return e.Unwrap()
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if one != nil {
				return one
			}
		}
	}
	return nil
}

// nameOf is the name as it stands in the source, such as *pq.Error; a type without a name has no class.
func nameOf(t reflect.Type) string {
	named := t
	if t.Kind() == reflect.Pointer {
		named = t.Elem()
	}
	if named.Name() == "" {
		return ErrorOther
	}
	name := t.String()
	if len(name) > maxTypeName {
		name = strings.ToValidUTF8(name[:maxTypeName], "")
	}
	return name
}
