package zqfx

import (
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// origin is where the application declared something: file:line.
type origin string

// callerOrigin is the line that called the exported function which calls it.
func callerOrigin() origin {
	_, file, line, ok := runtime.Caller(2)
	if !ok {
		return "an unknown line"
	}
	return origin(fmt.Sprintf("%s:%d", file, line))
}

// fault says what is wrong with something that was declared here.
func (o origin) fault(what string, err error) error {
	return fmt.Errorf("zqfx: %s at %s: %w", what, o, err)
}

func invalid(field string, value any, want string) error {
	return &zq.InvalidError{Field: field, Value: fmt.Sprint(value), Want: want}
}

// isNil tells a nil pointer, function, map, channel or slice in an interface from one with something in it.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan, reflect.Slice, reflect.Interface, reflect.UnsafePointer:
		return r.IsNil()
	default:
		return false
	}
}

// base is the origin without its directory, for a name that people read.
func (o origin) base() string {
	return filepath.Base(string(o))
}
