package idempotency

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// gate is a store whose calls wait to be let through.
type gate struct {
	sizes []int
	open  chan struct{}
}

func (g *gate) send(_ context.Context, claims []Claim) []Answer {
	g.sizes = append(g.sizes, len(claims))
	<-g.open
	answers := make([]Answer, len(claims))
	for i := range claims {
		answers[i] = Answer{Granted: true, Record: Record{Owner: claims[i].Owner}}
	}
	return answers
}

// Alone a call goes out at once; who comes meanwhile goes together, at most MaxBatch; each gets its own answer. A
// caller that leaves is not sent. At the end no goroutine is left, or synctest complains.
func TestBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gate{open: make(chan struct{})}
		b := &batch[Claim]{send: g.send}
		join := func(ctx context.Context, i int) {
			o := Owner{Message: strconv.Itoa(i)}
			if a := b.join(ctx, Claim{Owner: o}); ctx.Err() == nil && (!a.Granted || a.Record.Owner != o) {
				t.Errorf("call %d: %+v", i, a)
			} else if ctx.Err() != nil && !errors.Is(a.Err, context.Canceled) {
				t.Errorf("call %d, whose caller left: %+v", i, a)
			}
		}
		leaving, leave := context.WithCancel(t.Context())
		go join(t.Context(), 0)
		synctest.Wait()
		go join(leaving, 1)
		for i := range MaxBatch + 10 {
			go join(t.Context(), 2+i)
		}
		synctest.Wait()
		leave()
		synctest.Wait()
		for range 3 {
			g.open <- struct{}{}
			synctest.Wait()
		}
		if len(g.sizes) != 3 || g.sizes[0] != 1 || g.sizes[1] != MaxBatch || g.sizes[2] != 10 {
			t.Errorf("steps of %v", g.sizes)
		}
		large := Claim{Name: Name{Key: string(make([]byte, batchBytes/2))}}
		for range 4 {
			go b.join(t.Context(), large)
			synctest.Wait()
		}
		for range 3 {
			g.open <- struct{}{}
			synctest.Wait()
		}
		if got := g.sizes[3:]; len(got) != 3 || got[0] != 1 || got[1] != 2 || got[2] != 1 {
			t.Errorf("steps of %v large ones", got)
		}
	})
}

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
