package sequence

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Bounds of one shared round trip.
const (
	readMost   = 500
	readWithin = 5 * time.Second
)

// reader reads the states of keys. Whoever asks while a round trip is under way joins the next one; alone, a
// question goes out at once. Its one goroutine lives only while questions wait.
type reader struct {
	rdb   redis.UniversalClient
	queue string

	mu      sync.Mutex
	waiting []*question
	flying  bool
}

// question is one delivery's. values and err are there when done is closed.
type question struct {
	key    string
	fields []string
	values []any
	err    error
	done   chan struct{}
}

// ask reads fields of a key's hash. A caller whose context ends does not wait for the answer.
func (r *reader) ask(ctx context.Context, key string, fields ...string) ([]any, error) {
	q := &question{key: key, fields: fields, done: make(chan struct{})}
	r.mu.Lock()
	r.waiting = append(r.waiting, q)
	if !r.flying {
		r.flying = true
		go r.fly() //nolint:contextcheck // a round trip belongs to several callers, and must not end with one of them
	}
	r.mu.Unlock()
	select {
	case <-q.done:
		return q.values, q.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// fly makes one round trip after the other until nobody waits. Each is bounded by readWithin.
func (r *reader) fly() {
	for {
		group := r.take()
		if len(group) == 0 {
			return
		}
		r.trip(group)
	}
}

func (r *reader) take() []*question {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.waiting), readMost)
	group := r.waiting[:n:n]
	r.waiting = r.waiting[n:]
	if len(r.waiting) == 0 {
		r.waiting = nil
	}
	r.flying = n > 0
	return group
}

func (r *reader) trip(group []*question) {
	ctx, cancel := context.WithTimeout(context.Background(), readWithin)
	defer cancel()
	cmds := make([]*redis.SliceCmd, len(group))
	// Its error is the first of the commands'; each question gets its own.
	_, _ = r.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, q := range group {
			cmds[i] = p.HMGet(ctx, zq.EffectKey(r.queue, hashPrefix+q.key), q.fields...)
		}
		return nil
	})
	for i, q := range group {
		q.values, q.err = cmds[i].Result()
		close(q.done)
	}
}

// lowest is the lowest number that waits between two numbers, both not included; ok says whether there is one.
func (r *reader) lowest(ctx context.Context, key string, above, below int64) (n int64, ok bool, err error) {
	got, err := r.rdb.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: zq.EffectKey(r.queue, lowestPrefix+key), ByScore: true, Count: 1,
		Start: "(" + itoa(above), Stop: "(" + itoa(below),
	}).Result()
	if err != nil || len(got) == 0 {
		return 0, false, err
	}
	if n, err = parseNumber(got[0]); err != nil || n <= above || n >= below {
		return 0, false, errForeign
	}
	return n, true, nil
}
