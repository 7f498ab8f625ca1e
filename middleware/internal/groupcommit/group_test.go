package groupcommit_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zqueue/zqueue/middleware/internal/groupcommit"
)

// gate makes calls that wait to be let through. The answer to a call is the call.
type gate struct {
	sizes []int
	sent  []string
	open  chan struct{}
}

func (g *gate) send(_ context.Context, calls []string) []string {
	g.sizes, g.sent = append(g.sizes, len(calls)), append(g.sent, calls...)
	<-g.open
	return slices.Clone(calls)
}

// pass lets so many steps through, one after the other.
func (g *gate) pass(steps int) {
	for range steps {
		g.open <- struct{}{}
		synctest.Wait()
	}
}

func (g *gate) want(t *testing.T, sizes ...int) {
	t.Helper()
	if !slices.Equal(g.sizes, sizes) {
		t.Errorf("steps of %v, want %v", g.sizes, sizes)
	}
	g.sizes = nil
}

// Alone a call goes out at once; who comes meanwhile goes together, at most MaxCalls; each gets its own answer. A
// caller that leaves is not sent. At the end no goroutine is left, or synctest complains.
func TestStepsTakeWhoWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := &gate{open: make(chan struct{})}
		g := &groupcommit.Group[string, string]{Name: "test", Send: x.send}
		join := func(ctx context.Context, q string) {
			a, err := g.Join(ctx, q)
			if ctx.Err() == nil && (err != nil || a != q) {
				t.Errorf("call %q: %q, %v", q, a, err)
			} else if ctx.Err() != nil && !errors.Is(err, errLeft) {
				t.Errorf("the call of one who left: %v", err)
			}
		}
		leaving, leave := context.WithCancelCause(t.Context())
		go join(t.Context(), "first")
		synctest.Wait()
		go join(leaving, "leaves")
		for i := range groupcommit.MaxCalls + 10 {
			go join(t.Context(), strconv.Itoa(i))
			synctest.Wait()
		}
		leave(errLeft)
		synctest.Wait()
		if n := g.Waiting(); n != groupcommit.MaxCalls+10 {
			t.Errorf("%d wait", n)
		}
		x.pass(3)
		x.want(t, 1, groupcommit.MaxCalls, 10)
		for i, q := range x.sent[1:] {
			if q != strconv.Itoa(i) {
				t.Fatalf("call %s was sent in place %d", q, i)
			}
		}
		join(leaving, "came too late")
		x.want(t)
	})
}

var errLeft = errors.New("left")

// A step ends before it is too heavy; what is too heavy by itself goes alone.
func TestStepsAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := &gate{open: make(chan struct{})}
		g := &groupcommit.Group[string, string]{Send: x.send, Weigh: func(q string) int { return len(q) }}
		for _, size := range []int{groupcommit.MaxBytes / 2, groupcommit.MaxBytes / 2, groupcommit.MaxBytes / 2, 1, 2 * groupcommit.MaxBytes} {
			go func() { _, _ = g.Join(t.Context(), strings.Repeat("x", size)) }()
			synctest.Wait()
		}
		x.pass(4)
		x.want(t, 1, 2, 1, 1)
	})
}

// A caller that leaves while its call is on its way has no answer; the others of the step have theirs.
func TestLeavingOnTheWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := &gate{open: make(chan struct{})}
		g := &groupcommit.Group[string, string]{Send: x.send}
		ctx, leave := context.WithCancelCause(t.Context())
		var group sync.WaitGroup
		group.Go(func() {
			if _, err := g.Join(ctx, "a"); !errors.Is(err, errLeft) {
				t.Errorf("who left heard %v", err)
			}
		})
		synctest.Wait()
		leave(errLeft)
		group.Wait()
		group.Go(func() {
			if a, err := g.Join(t.Context(), "b"); a != "b" || err != nil {
				t.Errorf("who stayed heard %q, %v", a, err)
			}
		})
		synctest.Wait()
		x.pass(2)
		group.Wait()
		x.want(t, 1, 1)
	})
}

// A step has an end, if its Send obeys the context.
func TestStepsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &groupcommit.Group[string, error]{Send: func(ctx context.Context, _ []string) []error {
			<-ctx.Done()
			return []error{ctx.Err()}
		}}
		began := time.Now()
		a, err := g.Join(t.Context(), "hangs")
		if !errors.Is(a, context.DeadlineExceeded) || err != nil || time.Since(began) != groupcommit.Timeout {
			t.Errorf("%v, %v after %s", a, err, time.Since(began))
		}
	})
}

// What a Send does wrong is an error of each caller, and of nobody after.
func TestFaultySends(t *testing.T) {
	t.Parallel()
	var do func([]string) []string
	g := &groupcommit.Group[string, string]{Name: "test", Send: func(_ context.Context, q []string) []string { return do(q) }}
	for want, bad := range map[string]func([]string) []string{
		"test: a call panicked: oh":  func([]string) []string { panic("oh") },
		"test: 0 answers to 1 calls": func([]string) []string { return nil },
		"test: 2 answers to 1 calls": func(q []string) []string { return append(q, "more") },
	} {
		do = bad
		if _, err := g.Join(t.Context(), "a"); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, err := g.Step([]string{"a"}); err == nil || err.Error() != want {
			t.Errorf("Step: got %v, want %s", err, want)
		}
	}
	do = slices.Clone[[]string]
	if a, err := g.Join(t.Context(), "a"); a != "a" || err != nil {
		t.Errorf("afterwards: %q, %v", a, err)
	}
}

func TestGroupConcurrentSafe(t *testing.T) {
	t.Parallel()
	g := &groupcommit.Group[int, int]{Send: func(_ context.Context, q []int) []int { return slices.Clone(q) }}
	var callers sync.WaitGroup
	for c := range 50 {
		callers.Go(func() {
			for i := range 200 {
				if a, err := g.Join(t.Context(), 1000*c+i); a != 1000*c+i || err != nil {
					t.Errorf("%d: %d, %v", 1000*c+i, a, err)
				}
			}
		})
	}
	callers.Wait()
	if g.Waiting() > 0 {
		t.Error("calls still wait")
	}
}
