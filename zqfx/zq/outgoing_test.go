package zq_test

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// mark adds a header to each message, in a copy, and notes what passed through it.
func mark(name string, seen *[]string) zq.SendMiddleware {
	return func(next zq.SendFunc) zq.SendFunc {
		return func(ctx context.Context, o *zq.Outgoing) ([]zq.Result, error) {
			for i := range o.Messages {
				headers := maps.Clone(o.Messages[i].Headers)
				if headers == nil {
					headers = map[string]string{}
				}
				headers["path"] += name
				o.Messages[i].Headers = headers
			}
			results, err := next(ctx, o)
			for _, r := range results {
				*seen = append(*seen, name+" "+o.Queue+" "+r.ID)
			}
			return results, err
		}
	}
}

func TestSendMiddlewareWrapsEachCall(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var seen []string
	p, err := zq.NewProducer(b.rdb, b.queue, zq.WithSendMiddleware(mark("a", &seen)), zq.WithSendMiddleware(mark("b", &seen)))
	if err != nil {
		t.Fatal(err)
	}
	mine := map[string]string{"own": "1"}
	if r, err := p.Enqueue(t.Context(), zq.Message{ID: "one", Headers: mine}); err != nil || r.ID != "one" || r.Sequence == 0 {
		t.Fatalf("receipt %+v, %v", r, err)
	}
	batch := []zq.Message{{ID: "two", Headers: mine}, {ID: "bad", Kind: "\x01"}}
	results, err := p.EnqueueBatch(t.Context(), batch)
	if err != nil || len(results) != 2 || results[0].Err != nil || !errors.Is(results[1].Err, zq.ErrInvalid) {
		t.Fatalf("batch: %+v, %v", results, err)
	}
	if diff := cmp.Diff(map[string]string{"own": "1"}, mine); diff != "" || batch[0].Headers["path"] != "" {
		t.Errorf("the caller's message was changed: %s%v", diff, batch[0].Headers)
	}
	for _, id := range []string{"one", "two"} {
		info, err := b.in.Message(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"own": "1", "path": "ab"}, info.Message.Headers); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
	want := []string{
		"b " + b.queue + " one", "a " + b.queue + " one",
		"b " + b.queue + " two", "b " + b.queue + " ", "a " + b.queue + " two", "a " + b.queue + " ",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// All that a middleware may do wrong is told to the caller, and a refusal of its own sends nothing.
func TestSendMiddlewareFaults(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	refused := errors.New("refused")
	cases := map[string]struct {
		mw   zq.SendFunc
		want error
	}{
		"refuses": {func(context.Context, *zq.Outgoing) ([]zq.Result, error) { return nil, refused }, refused},
		"says nothing": {func(context.Context, *zq.Outgoing) ([]zq.Result, error) {
			return nil, nil
		}, zq.ErrInvalid},
	}
	for name, c := range cases {
		p, err := zq.NewProducer(b.rdb, b.queue, zq.WithSendMiddleware(func(zq.SendFunc) zq.SendFunc { return c.mw }))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Enqueue(t.Context(), zq.Message{ID: "m"}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if got := b.depth(); got.Pending != 0 {
		t.Errorf("%d messages were sent", got.Pending)
	}
	if _, err := zq.NewProducer(b.rdb, b.queue, zq.WithSendMiddleware(nil)); !errors.Is(err, zq.ErrInvalid) {
		t.Errorf("nil middleware: %v", err)
	}
}

// AllOrNone holds through the middleware.
func TestSendMiddlewareKeepsAllOrNone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var seen []string
	p, err := zq.NewProducer(b.rdb, b.queue, zq.WithSendMiddleware(mark("a", &seen)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.EnqueueBatch(t.Context(), []zq.Message{{ID: "good"}, {Kind: "\x01"}}, zq.AllOrNone())
	if !errors.Is(err, zq.ErrInvalid) || b.state("good") != zq.StateUnknown {
		t.Errorf("%v, and the good one is %q", err, b.state("good"))
	}
}
