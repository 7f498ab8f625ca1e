package zq_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// bind binds a kind of strings to a function that notes what it got.
func bind(got *[]string, name string, opts ...zq.KindOption) zq.Binding {
	return zq.NewKind[string](name, opts...).Handle(func(_ context.Context, d *zq.Delivery, v string) error {
		*got = append(*got, name+" "+d.Kind+" "+v)
		return nil
	})
}

func TestMuxDispatches(t *testing.T) {
	t.Parallel()
	var got []string
	mux, err := zq.NewMux(bind(&got, "a"), bind(&got, "b", zq.WithAliases("old", "older")), bind(&got, "A"))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"a", "b", "old", "older", "A"} {
		if err := mux.Handle(context.Background(), &zq.Delivery{Kind: kind, Body: []byte(`"x"`)}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if want := []string{"a a x", "b b x", "b old x", "b older x", "A A x"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMuxUnknownKinds(t *testing.T) {
	t.Parallel()
	var got []string
	only := bind(&got, "a", zq.WithAliases("b"))
	mux, err := zq.NewMux(only)
	if err != nil {
		t.Fatal(err)
	}
	empty, err := zq.NewMux()
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range map[string]zq.Handler{"binding": only, "mux": mux, "empty mux": empty, "empty binding": zq.Binding{}} {
		for _, kind := range []string{"", "c", "a ", "A", "\x00"} {
			body := []byte("not JSON")
			d := &zq.Delivery{Kind: kind, Body: body}
			dead(t, name+" "+kind, h.Handle(context.Background(), d), zq.ReasonNoHandler)
			if string(d.Body) != "not JSON" {
				t.Errorf("%s: bytes touched", name)
			}
		}
	}
	if len(got) > 0 {
		t.Errorf("handled: %q", got)
	}
}

func TestMuxListsEveryFault(t *testing.T) {
	t.Parallel()
	var got []string
	nothing := zq.NewKind[int]("n").Handle(nil)
	_, err := zq.NewMux(
		bind(&got, "a"), bind(&got, "a"), bind(&got, "b", zq.WithAliases("a")), bind(&got, "c", zq.WithAliases("c")),
		bind(&got, ""), bind(&got, "x", zq.WithCodec(nil)), zq.Binding{}, nothing)
	wantFaults(t, err, "kind", "kind", "kind", "kind", "kind x: codec", "binding", "handler of n")
	if !strings.Contains(err.Error(), "bound once") {
		t.Errorf("%v does not say what is wrong with a name bound twice", err)
	}
	if err := nothing.Handle(context.Background(), &zq.Delivery{Kind: "n", Body: []byte("1")}); !errors.Is(err, zq.ErrInvalid) {
		t.Errorf("a binding without a function: %v", err)
	}
	if names := bind(&got, "b", zq.WithAliases("a")).Names(); !slices.Equal(names, []string{"b", "a"}) {
		t.Errorf("names %q", names)
	}
}

func TestChainOrder(t *testing.T) {
	t.Parallel()
	var got []string
	note := func(name string) zq.Middleware {
		return func(next zq.Handler) zq.Handler {
			return zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
				got = append(got, name+">")
				err := next.Handle(ctx, d)
				got = append(got, "<"+name)
				return err
			})
		}
	}
	inner := zq.HandlerFunc(func(context.Context, *zq.Delivery) error {
		got = append(got, "handler")
		return errOwn
	})
	chain := zq.Chain{note("first"), note("second"), note("third")}
	for range 2 { // a chain can be used again
		got = nil
		if err := chain.Then(inner).Handle(context.Background(), &zq.Delivery{}); !errors.Is(err, errOwn) {
			t.Errorf("the handler's error is gone: %v", err)
		}
		want := []string{"first>", "second>", "third>", "handler", "<third", "<second", "<first"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if h := (zq.Chain{}).Then(inner); h == nil || !errors.Is(h.Handle(context.Background(), &zq.Delivery{}), errOwn) {
		t.Error("an empty chain is not its handler")
	}
}
