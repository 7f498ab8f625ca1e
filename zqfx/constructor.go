package zqfx

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"

	"go.uber.org/fx"
)

// shape is what a constructor has to give: something with a method, or a function of a type if there is one.
type shape struct{ object, function reflect.Type }

func shapeOf[O, F any]() shape { return shape{reflect.TypeFor[O](), reflect.TypeFor[F]()} }

func (s shape) fits(t reflect.Type) bool {
	return t.Implements(s.object) || s.function != nil && t.Kind() == reflect.Func && t.ConvertibleTo(s.function)
}

func (s shape) want() string {
	method := s.object.Method(0)
	want := "a func(dependencies…) H or (H, error), where H has the method " + method.Name +
		strings.TrimPrefix(method.Type.String(), "func")
	if s.function != nil {
		want += " or is a " + s.function.String()
	}
	return want
}

// resultOf is the type that the constructor gives, or what is wrong with it.
func (s shape) resultOf(constructor any) (reflect.Type, error) {
	if isNil(constructor) {
		return nil, invalid("constructor", "nil", s.want())
	}
	t := reflect.TypeOf(constructor)
	if t.Kind() != reflect.Func {
		value := "a " + t.String()
		if t == reflect.TypeOf(fx.Annotate(nil)) {
			value += " (tags of dependencies go into an fx.In struct)"
		}
		return nil, invalid("constructor", value, s.want())
	}
	name := runtime.FuncForPC(reflect.ValueOf(constructor).Pointer()).Name()
	good := t.NumOut() == 1 || t.NumOut() == 2 && t.Out(1) == reflect.TypeFor[error]()
	if !good || !s.fits(t.Out(0)) {
		value := fmt.Sprintf("%s, a %s", name, t)
		if t.NumOut() > 0 && t.Out(0).Kind() != reflect.Pointer && s.fits(reflect.PointerTo(t.Out(0))) {
			value += fmt.Sprintf(" (the method is *%s's)", t.Out(0))
		}
		return nil, invalid("constructor", value, s.want())
	}
	return t.Out(0), nil
}

// adapter is a func(H) (R, error) for fx, which knows H only as a reflected type. A nil is the error missing.
func adapter[R any](h reflect.Type, missing error, build func(any) R) any {
	result, fault := reflect.TypeFor[R](), reflect.TypeFor[error]()
	t := reflect.FuncOf([]reflect.Type{h}, []reflect.Type{result, fault}, false)
	return reflect.MakeFunc(t, func(args []reflect.Value) []reflect.Value {
		if v := args[0].Interface(); !isNil(v) {
			return []reflect.Value{reflect.ValueOf(build(v)), reflect.Zero(fault)}
		}
		return []reflect.Value{reflect.Zero(result), reflect.ValueOf(&missing).Elem()}
	}).Interface()
}

// convert makes a value of a function type F out of one whose type may have a name.
func convert[F any](v any) F {
	return reflect.ValueOf(v).Convert(reflect.TypeFor[F]()).Interface().(F)
}
