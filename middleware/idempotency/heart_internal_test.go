package idempotency

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The heart renews while there are runs and stops by itself; a removal waits for a renewal under way.
func TestHeart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var beats, slow atomic.Int64
		var answer atomic.Pointer[Answer]
		h := newHeart(time.Minute, func(claims []Claim) []Answer {
			beats.Add(1)
			<-time.After(time.Duration(slow.Load()))
			return slices.Repeat([]Answer{*answer.Load()}, len(claims))
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		m := &mark{taken: cancel}
		answer.Store(&Answer{Granted: true})
		h.add(m)
		<-time.After(10*time.Minute + time.Second)
		if n := beats.Load(); n != 10 {
			t.Errorf("%d beats in ten minutes", n)
		}
		answer.Store(&Answer{Err: errors.New("away")}) // then it tries four times as often
		<-time.After(3 * time.Minute)
		if n := beats.Load(); n < 18 || ctx.Err() != nil {
			t.Errorf("%d beats, %v", n, context.Cause(ctx))
		}
		slow.Store(int64(time.Second))
		before := beats.Load()
		for beats.Load() == before {
			<-time.After(time.Millisecond)
		}
		began := time.Now()
		h.remove(t.Context(), m)
		if waited := time.Since(began); waited < 900*time.Millisecond || waited > time.Second {
			t.Errorf("the removal waited %v for a renewal of a second", waited)
		}
		before = beats.Load()
		<-time.After(time.Hour)
		if beats.Load() != before {
			t.Error("it beats for nobody")
		}
		answer.Store(&Answer{})
		h.add(m)
		<-time.After(2 * time.Minute)
		if !errors.Is(context.Cause(ctx), ErrTaken) {
			t.Errorf("taken over: %v", context.Cause(ctx))
		}
		h.remove(t.Context(), m)
		<-time.After(time.Hour)
	})
}
