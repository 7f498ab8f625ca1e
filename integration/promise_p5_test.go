package integration_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// P5: at most one worker is at a key at any time, four of them in two processes, some of which are killed;
// and what each writes beside its fence into an outside store never goes back. What a holder of an expired
// lease may still do is in crash_pause_test.go.
func TestP5OneHolderOfAKey(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	out := &sent{}
	var producers sync.WaitGroup
	producers.Go(func() { x.produce(x.prod, traffic{name: "a", messages: 2000, keys: 12, lone: 30}, out) })
	lots := mix{Fail: 6, Postpone: 6, Panic: 1}
	draw := x.slowly(300*time.Microsecond, lots.fate(x.dice))
	reg := &register{last: map[string]int64{}}
	fenced := func(ctx context.Context, d *zq.Delivery) (zqt.Op, error) {
		if err := reg.write(d); err != nil {
			t.Error(err)
		}
		return draw(ctx, d)
	}
	// Long enough that a loaded machine does not end it: whoever loses a lease may still be at the key.
	cfg := zq.ConsumerConfig{Concurrency: 8, Lease: 10 * time.Second, MaxAttempts: 1000, MaxLosses: 50}
	team := x.hire(2, cfg, fenced)
	x.mortal(workerSpec{
		Mix: lots, Concurrency: 8, Lease: 600 * time.Millisecond, MaxAttempts: 1000, MaxLosses: 50, Slow: time.Millisecond,
	}, 3, func() bool { return x.counters().Acked > 1700 })
	producers.Wait()
	x.drained()
	team.dismiss()
	x.over(2000, 0)
	x.inOrder()
	if c := x.counters(); c.Reaped == 0 || reg.writes < 500 {
		t.Errorf("this was no trial: %d writes, %+v", reg.writes, c)
	}
}

// register is an outside store that knows the greatest fence of each key.
type register struct {
	mu     sync.Mutex
	last   map[string]int64
	writes int
}

func (r *register) write(d *zq.Delivery) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes++
	if d.Fence() <= 0 || d.Fence() < r.last[d.Key] {
		return fmt.Errorf("fence %d of key %s after %d", d.Fence(), d.Key, r.last[d.Key])
	}
	r.last[d.Key] = d.Fence()
	return nil
}

// storeRegister is the same in Redis, for several processes: 1 if the write was taken, else 0.
func storeRegister(ctx context.Context, rdb redis.UniversalClient, queue, key string, fence int64, value string) (int64, error) {
	const ifNewer = `local last = tonumber(redis.call('HGET', KEYS[1], 'fence') or '0')
if tonumber(ARGV[1]) < last then return 0 end
redis.call('HSET', KEYS[1], 'fence', ARGV[1], 'value', ARGV[2])
return 1`
	return rdb.Eval(ctx, ifNewer, []string{zq.EffectKey(queue, "register:"+key)}, fence, value).Int64()
}

// Every claim has a greater fence than those before it, of whatever key, so that one register may serve many.
func TestP5OneHolderFencesGrow(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	out := &sent{}
	x.produce(x.prod, traffic{name: "a", messages: 600, keys: 30, loose: 50}, out)
	var mu sync.Mutex
	firstRun := map[int64]string{} // fence → who had it
	team := x.hire(4, zq.ConsumerConfig{Concurrency: 2, ClaimAhead: zq.Unlimited, MaxAttempts: 100}, func(_ context.Context, d *zq.Delivery) (zqt.Op, error) {
		mu.Lock()
		defer mu.Unlock()
		if before := firstRun[d.Fence()]; before == d.ID {
			t.Errorf("%s ran twice under fence %d", d.ID, d.Fence())
		}
		firstRun[d.Fence()] = d.ID
		if d.Attempt == 1 && x.dice.percent(30) {
			return zqt.Failed, zq.RetryAfter(0, errMixed)
		}
		return zqt.Succeeded, nil
	})
	x.drained()
	team.dismiss()
	x.over(600, 0)
	x.inOrder()
	if len(firstRun) < 50 {
		t.Errorf("only %d claims", len(firstRun))
	}
}
