package idempotency_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// Every duration has an exact meaning or is refused (FAULTS B29); all faults are listed at once.
func TestOptionDurations(t *testing.T) {
	t.Parallel()
	store := newStoreForOptions(t)
	long := 90 * 24 * time.Hour
	for name, c := range map[string]struct {
		set         func(time.Duration) idempotency.Option
		least, most time.Duration
	}{
		"RunningTTL": {idempotency.RunningTTL, time.Second, 24 * time.Hour},
		"DoneTTL":    {idempotency.DoneTTL, time.Second, long},
		"FailedTTL":  {idempotency.FailedTTL, time.Second, long},
		"BusyDelay": {func(d time.Duration) idempotency.Option { return idempotency.BusyDelay(d, d) },
			time.Millisecond, 24 * time.Hour},
	} {
		for _, d := range []time.Duration{
			0, 1, -1, 999 * time.Microsecond, time.Millisecond, c.least - 1, c.least, c.least + 1, c.most, c.most + 1,
		} {
			_, err := idempotency.New(store, idempotency.FromID(), c.set(d))
			if ok := d >= c.least && d <= c.most; ok != (err == nil) || err != nil &&
				(!errors.Is(err, zq.ErrInvalid) || !strings.Contains(err.Error(), name)) {
				t.Errorf("%s(%v): %v", name, d, err)
			}
		}
	}
	if _, err := idempotency.New(store, idempotency.FromID(), idempotency.BusyDelay(time.Second, time.Millisecond)); err == nil {
		t.Error("BusyDelay takes least above most")
	}
}

func newStoreForOptions(t *testing.T) idempotency.Store {
	t.Helper()
	return newTrial(t).store
}

// All that is wrong is said at once.
func TestNewListsAllFaults(t *testing.T) {
	t.Parallel()
	_, err := idempotency.New(nil, idempotency.FromHeader(""), idempotency.RunningTTL(0), idempotency.DoneTTL(0),
		idempotency.Scope("a:b"), idempotency.OnFailure(7))
	for _, want := range []string{"store", "FromHeader", "RunningTTL", "DoneTTL", "Scope", "OnFailure"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %s", err, want)
		}
	}
	for name, key := range map[string]idempotency.Key{
		"zero": {}, "nil func": idempotency.FromFunc(nil), "nil field": idempotency.FromKind[string](zq.NewKind[string]("k"), nil),
		"bad kind": idempotency.FromKind(zq.NewKind[string](""), func(s string) string { return s }),
	} {
		if _, err := idempotency.New(newStoreForOptions(t), key); !errors.Is(err, zq.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type payment struct{ Order string }

// Where the business key comes from.
func TestKeys(t *testing.T) {
	t.Parallel()
	paid := zq.NewKind[payment]("payment", zq.WithAliases("pay"))
	fromKind := idempotency.FromKind(paid, func(p payment) string { return p.Order })
	boom := errors.New("boom")
	body := []byte(`{"Order":"o-1"}`)
	cases := map[string]struct {
		key  idempotency.Key
		d    zq.Delivery
		want string // the business key, "" for none
		dead string
		err  error
	}{
		"id":           {key: idempotency.FromID(), want: "a"},
		"header":       {key: idempotency.FromHeader("h"), d: zq.Delivery{Headers: map[string]string{"h": "x"}}, want: "x"},
		"no header":    {key: idempotency.FromHeader("h")},
		"kind":         {key: fromKind, d: zq.Delivery{Kind: "payment", Body: body}, want: "o-1"},
		"alias":        {key: fromKind, d: zq.Delivery{Kind: "pay", Body: body}, want: "o-1"},
		"other kind":   {key: fromKind, d: zq.Delivery{Kind: "mail", Body: body}},
		"bad body":     {key: fromKind, d: zq.Delivery{Kind: "payment", Body: []byte("{")}, dead: zq.ReasonDecode},
		"empty field":  {key: fromKind, d: zq.Delivery{Kind: "payment", Body: []byte("{}")}},
		"func":         {key: say("o-2", nil), want: "o-2"},
		"func's error": {key: say("", boom), err: boom},
		"longest":      {key: say(strings.Repeat("k", 512), nil), want: strings.Repeat("k", 512)},
		"too long":     {key: say(strings.Repeat("k", 513), nil), dead: idempotency.ReasonBadKey},
		"hostile":      {key: say("\x00{}\xff", nil), want: "\x00{}\xff"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTrial(t)
			mw, err := idempotency.New(x.store, c.key)
			x.must(err)
			var runs tally
			d := c.d
			d.Queue, d.ID = x.queue, "a"
			err = mw(zq.HandlerFunc(runs.handle)).Handle(t.Context(), &d)
			if v := zq.Explain(err); v.Reason != c.dead || (err != nil) != (c.dead != "" || c.err != nil) || c.err != nil && !errors.Is(err, c.err) {
				t.Fatalf("result: %v", err)
			}
			if err != nil {
				runs.want(t, 0)
				return
			}
			runs.want(t, 1)
			if c.want == "" {
				if keys := x.keys(); len(keys) > 0 {
					t.Errorf("without a business key there is %q", keys)
				}
			} else if r := x.record(c.want); r.State != idempotency.StateDone {
				t.Errorf("record of %q: %+v", c.want, r)
			}
		})
	}
}

func say(key string, err error) idempotency.Key {
	return idempotency.FromFunc(func(context.Context, *zq.Delivery) (string, error) { return key, err })
}

// Without a key a message runs unchecked, or is a dead letter where one is required.
func TestNoKey(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	var runs tally
	unchecked := x.guard(func(ctx context.Context, d *zq.Delivery) error {
		return errors.Join(idempotency.SetResult(ctx, []byte("goes nowhere")), runs.handle(ctx, d))
	})
	for range 2 {
		x.must(unchecked.Handle(t.Context(), delivery(x.queue, "a", "")))
	}
	runs.want(t, 2)
	err := x.guard(runs.handle, idempotency.RequireKey()).Handle(t.Context(), delivery(x.queue, "a", ""))
	if zq.Explain(err).Reason != idempotency.ReasonNoKey {
		t.Errorf("result: %v", err)
	}
	runs.want(t, 2)
	x.told(idempotency.Unkeyed, 3)
}

// Keys are unique within a queue, or within a scope that queues share.
func TestScope(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	var apart, shared tally
	each, all := x.guard(apart.handle), x.guard(shared.handle, idempotency.Scope("payments"))
	for _, queue := range []string{"orders", "mail", "orders"} {
		x.must(each.Handle(t.Context(), delivery(queue, "a", "o-1")))
		x.must(all.Handle(t.Context(), delivery(queue, "a", "o-1")))
	}
	apart.want(t, 2)
	shared.want(t, 1)
}

// A panic in a hook harms nothing (FAULTS B49).
func TestHooksPanic(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{"panic": "hook", "panic(nil)": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad := func() { panic(value) }
			x, proxy := behindProxy(t)
			var runs tally
			mw, err := idempotency.New(x.store, idempotency.FromHeader("order"),
				idempotency.OnOutcome(func(context.Context, *zq.Delivery, idempotency.Outcome, idempotency.Record) { bad() }),
				idempotency.OnStore(func(error) { bad() }), idempotency.Logger(slog.New(slog.DiscardHandler)),
				idempotency.OnDuplicate(func(context.Context, *zq.Delivery, idempotency.Record) error { bad(); return nil }),
			)
			x.must(err)
			h := mw(zq.HandlerFunc(runs.handle))
			x.must(h.Handle(t.Context(), delivery(x.queue, "a", "o-1")))
			var panicked *zq.PanicError
			if err := h.Handle(t.Context(), delivery(x.queue, "b", "o-1")); !errors.As(err, &panicked) {
				t.Errorf("OnDuplicate's panic became %v", err)
			}
			proxy.Cut()
			if err := h.Handle(t.Context(), delivery(x.queue, "c", "o-2")); zq.Explain(err).Action != zq.ActionPostpone {
				t.Errorf("with OnStore's panic: %v", err)
			}
			runs.want(t, 1)
		})
	}
}
