package idempotency

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// yes grants everything.
type yes struct{ Store }

func (yes) Begin(_ context.Context, c []Claim) []Answer   { return granted(len(c)) }
func (yes) Finish(_ context.Context, e []Ending) []Answer { return granted(len(e)) }

func granted(n int) []Answer {
	answers := make([]Answer, n)
	for i := range answers {
		answers[i].Granted = true
	}
	return answers
}

// Deliveries leave nothing behind (FAULTS B51): no mark to renew, no call that waits. That no goroutine is left is
// checked when all tests of the package are over.
func TestNothingIsLeftConcurrentSafe(t *testing.T) {
	t.Parallel()
	g, err := newGuard(yes{}, FromID(), nil)
	if err != nil {
		t.Fatal(err)
	}
	results := []error{nil, errors.New("failed"), zq.Postpone(0), zq.Dead("bad", nil)}
	var wait sync.WaitGroup
	for worker := range 100 {
		wait.Go(func() {
			for i := range 1000 {
				d := &zq.Delivery{Queue: "q", ID: strconv.Itoa(1000*worker + i)}
				_ = g.handle(t.Context(), d, zq.HandlerFunc(func(context.Context, *zq.Delivery) error {
					return results[i%len(results)]
				}))
			}
		})
	}
	wait.Wait()
	if n := len(g.heart.marks); n > 0 {
		t.Errorf("%d marks are still renewed", n)
	}
	if n := g.begins.Waiting() + g.ends.Waiting(); n > 0 {
		t.Errorf("%d calls still wait", n)
	}
}

// Two messages of one id are two owners, a redelivery of one is the same, and a plain member of any length has a name.
func TestOwner(t *testing.T) {
	t.Parallel()
	a := ownerOf(&zq.Delivery{Queue: "q", ID: "m", Sequence: 1})
	b := ownerOf(&zq.Delivery{Queue: "q", ID: "m", Sequence: 2})
	again := ownerOf(&zq.Delivery{Queue: "q", ID: "m", Sequence: 1, Attempt: 7})
	long := ownerOf(&zq.Delivery{Queue: "q", ID: string(make([]byte, 1<<20))})
	longer := ownerOf(&zq.Delivery{Queue: "q", ID: string(make([]byte, 1<<20+1))})
	if a == b || a != again || long == longer || len(long.Message) > MaxKey {
		t.Errorf("%q %q %q, and %q %q", a.Message, b.Message, again.Message, long.Message, longer.Message)
	}
}

// An owner's id is that of its message, whatever bytes it has; a plain member has none.
func TestOwnerID(t *testing.T) {
	t.Parallel()
	for id, d := range map[string]*zq.Delivery{
		"m": {Queue: "q", ID: "m", Sequence: 1}, "a/b#c": {Queue: "q", ID: "a/b#c", Sequence: 12}, "": {Queue: "q", ID: "body", Plain: true},
	} {
		if got := ownerOf(d).ID(); got != id {
			t.Errorf("%s: %q, want %q", d.ID, got, id)
		}
	}
	long := ownerOf(&zq.Delivery{Queue: "q", ID: string(make([]byte, 1<<20)), Plain: true})
	if long.ID() != "" || (Owner{Message: "x"}).ID() != "" {
		t.Errorf("%q", long.ID())
	}
}

// Durations round up to whole milliseconds.
func TestMillis(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]int64{
		time.Millisecond: 1, time.Millisecond + 1: 2, time.Second: 1000, time.Second + 1: 1001, MaxTTL: 7_776_000_000,
	} {
		if got := millis(d); got != want {
			t.Errorf("%v is %d ms, want %d", d, got, want)
		}
	}
}
