package ratelimit

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// door lets steps through one by one.
type door struct {
	steps [][]call
	open  chan struct{}
}

func (d *door) send(_ context.Context, calls []call) []answer {
	d.steps = append(d.steps, slices.Clone(calls))
	<-d.open
	answers := make([]answer, len(calls))
	for i, c := range calls {
		n, _ := strconv.Atoi(c.id)
		answers[i] = answer{wait: time.Duration(n)}
	}
	return answers
}

// Alone a call goes out at once; who comes meanwhile goes together, stepMost at most, in the order in which they came;
// each gets its own answer. A caller that leaves is not sent. At the end no goroutine is left, or synctest complains.
func TestBatchShares(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &door{open: make(chan struct{})}
		b := &batch{send: d.send}
		gone := errors.New("gone")
		join := func(ctx context.Context, i int) {
			a := b.join(ctx, call{id: strconv.Itoa(i)})
			switch {
			case ctx.Err() != nil && !errors.Is(a.err, gone):
				t.Errorf("call %d, whose caller left: %+v", i, a)
			case ctx.Err() == nil && (a.err != nil || a.wait != time.Duration(i)):
				t.Errorf("call %d: %+v", i, a)
			}
		}
		leaving, leave := context.WithCancelCause(t.Context())
		go join(t.Context(), 0)
		synctest.Wait()
		go join(leaving, 999_999)
		for i := range stepMost + 10 {
			go join(t.Context(), 1+i)
			synctest.Wait()
		}
		leave(gone)
		synctest.Wait()
		join(leaving, 999_999) // over before it came
		for range 3 {
			d.open <- struct{}{}
			synctest.Wait()
		}
		var sizes []int
		next := 0
		for _, step := range d.steps {
			sizes = append(sizes, len(step))
			for _, c := range step {
				if c.id != strconv.Itoa(next) {
					t.Fatalf("call %s was sent in place %d", c.id, next)
				}
				next++
			}
		}
		if !slices.Equal(sizes, []int{1, stepMost, 10}) {
			t.Errorf("steps of %v", sizes)
		}
		if b.flying || b.waiting != nil {
			t.Errorf("left: flying %t, %d waiting", b.flying, len(b.waiting))
		}
	})
}

// A caller leaves while its call is on its way: the others of that step get their answers.
func TestBatchCallerLeavesOnTheWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &door{open: make(chan struct{})}
		b := &batch{send: d.send}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if a := b.join(ctx, call{id: "1"}); !errors.Is(a.err, context.DeadlineExceeded) {
			t.Errorf("told %+v", a)
		}
		answered := make(chan answer, 1)
		go func() { answered <- b.join(t.Context(), call{id: "2"}) }()
		synctest.Wait()
		d.open <- struct{}{}
		d.open <- struct{}{}
		if a := <-answered; a.err != nil || a.wait != 2 {
			t.Errorf("told %+v", a)
		}
	})
}

// A client that panics costs its callers their answers and nothing else, and a step has an end.
func TestBatchClientPanicsOrHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &batch{send: func(ctx context.Context, calls []call) []answer {
			if calls[0].id == "panic" {
				panic("boom")
			}
			<-ctx.Done()
			return slices.Repeat([]answer{{err: ctx.Err()}}, len(calls))
		}}
		if a := b.join(t.Context(), call{id: "panic"}); a.err == nil || !strings.Contains(a.err.Error(), "boom") {
			t.Errorf("told %+v", a)
		}
		began := time.Now()
		a := b.join(t.Context(), call{id: "hang"})
		if !errors.Is(a.err, context.DeadlineExceeded) || time.Since(began) != callTimeout {
			t.Errorf("told %+v after %s", a, time.Since(began))
		}
	})
}
