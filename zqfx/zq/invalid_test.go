package zq_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// errDial is what a client of nowhere says: a test that sees it has got past validation.
var errDial = errors.New("no server in this test")

// nowhere is a client that cannot connect.
func nowhere(t *testing.T) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{
		MaxRetries: -1, DialerRetries: 1,
		Dialer: func(context.Context, string, string) (net.Conn, error) { return nil, errDial },
	})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// faults lists every *InvalidError in err, at any depth.
func faults(err error) []*zq.InvalidError {
	switch e := err.(type) { //nolint:errorlint // it takes the tree apart by hand
	case nil:
		return nil
	case *zq.InvalidError:
		return []*zq.InvalidError{e}
	case interface{ Unwrap() []error }:
		var all []*zq.InvalidError
		for _, one := range e.Unwrap() {
			all = append(all, faults(one)...)
		}
		return all
	}
	return faults(errors.Unwrap(err))
}

// wantFaults checks that err names exactly these fields, in any order, each with a value and a range.
func wantFaults(t *testing.T, err error, fields ...string) {
	t.Helper()
	var got []string
	for _, f := range faults(err) {
		got = append(got, f.Field)
		if f.Value == "" || f.Want == "" {
			t.Errorf("%+v: a fault names its value and its range", f)
		}
		if !errors.Is(f, zq.ErrInvalid) {
			t.Errorf("%v is no ErrInvalid", f)
		}
		for _, part := range []string{f.Field, f.Value, f.Want} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %q", err, part)
			}
		}
	}
	slices.Sort(got)
	slices.Sort(fields)
	if diff := cmp.Diff(fields, got); diff != "" {
		t.Errorf("faulty fields of %v (-want +got):\n%s", err, diff)
	}
	if len(fields) > 0 && !errors.Is(err, zq.ErrInvalid) {
		t.Errorf("%v is no ErrInvalid", err)
	}
}

func TestInvalidErrorText(t *testing.T) {
	t.Parallel()
	err := &zq.InvalidError{Field: "message.delay", Value: "-1ns", Want: "0 to 1h"}
	if got, want := err.Error(), "zq: message.delay is -1ns, want 0 to 1h"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if errors.Is(err, zq.ErrClosed) {
		t.Error("an InvalidError is every error")
	}
}

func TestQueueNames(t *testing.T) {
	t.Parallel()
	good := []string{"a", "A-z_0.9", ".", "-", "_", "0", strings.Repeat("q", zq.MaxQueueName)}
	bad := []string{
		"", " ", "a b", "a/b", "a:b", "{", "}", "{}", "a}b", "{a}", "a\x00", "é", "a\n", "*", "../x", "a,b",
		strings.Repeat("q", zq.MaxQueueName+1), "\xff",
	}
	rdb := nowhere(t)
	handler := zq.HandlerFunc(func(context.Context, *zq.Delivery) error { return nil })
	makers := map[string]func(string) error{
		"producer":  func(q string) error { _, err := zq.NewProducer(rdb, q); return err },
		"consumer":  func(q string) error { _, err := zq.NewConsumer(rdb, q, handler, zq.ConsumerConfig{}); return err },
		"ordered":   func(q string) error { _, err := zq.NewOrderedConsumer(rdb, q, handler, zq.OrderedConfig{}); return err },
		"inspector": func(q string) error { _, err := zq.NewInspector(rdb, q); return err },
	}
	for name, make := range makers {
		for _, q := range good {
			if err := make(q); err != nil {
				t.Errorf("%s of %q: %v", name, q, err)
			}
		}
		for _, q := range bad {
			wantFaults(t, make(q), "queue")
		}
	}
}

func TestConstructorsListAllFaults(t *testing.T) {
	t.Parallel()
	_, err := zq.NewProducer(nil, "a b", zq.WithMaxBody(0), zq.WithDedupeWindow(-1))
	wantFaults(t, err, "redis client", "queue", "max body", "dedupe window")
	_, err = zq.NewConsumer(nil, "", nil, zq.ConsumerConfig{Concurrency: -1, Lease: 1})
	wantFaults(t, err, "redis client", "queue", "handler", "config.Concurrency", "config.Lease")
	_, err = zq.NewInspector(nil, "")
	wantFaults(t, err, "redis client", "queue")
}
