package integration_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// traffic is what a producer sends: so many messages, for so many keys.
type traffic struct {
	name                        string // prefix of the ids
	messages, keys              int
	loose, delayed, twice, lone int // percent without a key, kept back, sent twice, sent one by one
}

// sent is what came of it.
type sent struct {
	mu                   sync.Mutex
	accepted, duplicates []string
}

func (s *sent) add(r zq.Receipt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Duplicate {
		s.duplicates = append(s.duplicates, r.ID)
	} else {
		s.accepted = append(s.accepted, r.ID)
	}
}

// produce sends the traffic through p, in batches and alone. What has an unknown outcome is sent again.
func (x *trial) produce(p *zq.Producer, tr traffic, out *sent) {
	for n := 0; n < tr.messages; {
		size := 1
		if !x.dice.percent(tr.lone) {
			size = min(x.dice.between(2, 60), tr.messages-n)
		}
		var batch []zq.Message
		for range size {
			batch = append(batch, x.message(&tr, n))
			n++
		}
		x.deliver(p, batch, out, false)
		if x.dice.percent(tr.twice) {
			x.deliver(p, batch, out, true)
		}
	}
}

func (x *trial) message(tr *traffic, n int) zq.Message {
	m := zq.Message{ID: fmt.Sprintf("%s-%05d", tr.name, n), Body: fmt.Append(nil, n)}
	if !x.dice.percent(tr.loose) {
		m.Key = fmt.Sprintf("k%02d", x.dice.below(tr.keys))
	}
	if x.dice.percent(tr.delayed) {
		m.Delay = time.Duration(x.dice.between(1, 200)) * time.Millisecond
	}
	return m
}

// deliver sends until every message has a receipt; known says that they were delivered before. A message that
// is a duplicate after a call of unknown outcome was accepted by that call.
func (x *trial) deliver(p *zq.Producer, batch []zq.Message, out *sent, known bool) {
	first := true
	done := eventually(patience, func() bool {
		var left []zq.Message
		for i, r := range x.attempt(p, batch) {
			if r.Err != nil {
				left = append(left, batch[i])
				continue
			}
			x.noteEnqueued(batch[i], r.Receipt)
			if !first && !known {
				r.Receipt.Duplicate = false
			}
			out.add(r.Receipt)
		}
		batch, first = left, false
		return len(batch) == 0
	})
	if !done {
		x.t.Errorf("%d messages were never accepted", len(batch))
	}
}

func (x *trial) attempt(p *zq.Producer, batch []zq.Message) []zq.Result {
	if len(batch) == 1 {
		r, err := p.Enqueue(context.Background(), batch[0])
		return []zq.Result{{Receipt: r, Err: err}}
	}
	results, err := p.EnqueueBatch(context.Background(), batch)
	if results == nil {
		x.t.Errorf("batch: %v", err)
		results = make([]zq.Result, len(batch))
	}
	return results
}

// churn keeps one place in the crew filled until ctx ends: a consumer lives for some runs of its handler,
// stops, and the next one takes its place. It is not called in the test's goroutine.
func (x *trial) churn(ctx context.Context, rdb redis.UniversalClient, name string, cfg zq.ConsumerConfig, f fate, least, most int) {
	cfg.Logger, cfg.RetryDelay = slog.New(slog.DiscardHandler), shortRetry
	for life := 0; ctx.Err() == nil; life++ {
		var runs atomic.Int64
		enough, span := make(chan struct{}), int64(x.dice.between(least, most))
		counted := func(ctx context.Context, d *zq.Delivery) (zqt.Op, error) {
			if runs.Add(1) == span {
				close(enough)
			}
			return f(ctx, d)
		}
		h := recorded(x.rec.Add, fmt.Sprintf("%s.%d", name, life), cfg.MaxAttempts, counted)
		c, err := zq.NewConsumer(rdb, x.queue, h, cfg)
		if err == nil {
			err = c.Start(context.Background())
		}
		if err != nil {
			if ctx.Err() == nil && !passes(err) {
				x.t.Errorf("start %s: %v", name, err)
				return
			}
			select { // Redis is away
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		select {
		case <-enough:
		case <-ctx.Done():
		}
		if err := c.Stop(context.Background()); err != nil {
			x.t.Errorf("stop %s: %v", name, err)
		}
	}
}

// passes tells whether a start failed for want of a server.
func passes(err error) bool {
	for _, meant := range []error{zq.ErrInvalid, zq.ErrClosed, zq.ErrNewerLayout, zq.ErrOldServer, zq.ErrWrongType} {
		if errors.Is(err, meant) {
			return false
		}
	}
	return true
}

// crew are consumers that come and go in this process.
type crew struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// hire lets n consumers come and go, until dismissed.
func (x *trial) hire(n int, cfg zq.ConsumerConfig, f fate) *crew {
	ctx, cancel := context.WithCancel(context.Background())
	c := &crew{cancel: cancel}
	for i := range n {
		c.wg.Go(func() { x.churn(ctx, x.rdb, fmt.Sprintf("w%d", i), cfg, f, 30, 400) })
	}
	x.t.Cleanup(c.dismiss)
	return c
}

func (c *crew) dismiss() {
	c.cancel()
	c.wg.Wait()
}

// mortal keeps a child in the crew that is killed again and again after so many runs, at most lives times,
// then ends it in good order. It must be called in the test's goroutine.
func (x *trial) mortal(s workerSpec, lives int, until func() bool) {
	x.t.Helper()
	for life := range lives {
		if until() {
			return
		}
		s.Name = fmt.Sprintf("child.%d", life)
		p := x.child(s)
		runs := x.dice.between(1, 4)
		busy := eventually(patience, func() bool {
			if more := awaitLine(p, "run ", 20*time.Millisecond); more {
				runs--
			}
			return runs == 0 || until()
		})
		if !busy {
			x.t.Fatalf("%s has nothing to do", s.Name)
		}
		x.killed(p, s.Name)
	}
}

// awaitLine takes a child's lines until one has the prefix; false if none came in time.
func awaitLine(p *zqt.Process, prefix string, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case line, more := <-p.Lines():
			if !more || len(line) >= len(prefix) && line[:len(prefix)] == prefix {
				return more
			}
		case <-timer.C:
			return false
		}
	}
}

// script matches calls of one of the queue's scripts: by its first key, and whether it is given the wake-up
// marker's and a claim's. The rehearsals of a consumer that starts are on other keys.
func (x *trial) script(name string) zqt.Match {
	shape, known := map[string]struct {
		first        string
		wakes, claim bool
	}{
		"enqueue": {"msg", true, false}, "find": {"msg", false, false}, "claim": {"ready", true, true},
		"reap": {"ready", true, false}, "settle": {"claim:", true, true}, "checkpoint": {"claim:", false, true},
		"heartbeat": {"leases", false, false}, "replay": {"dead", true, false},
	}[name]
	if !known {
		x.t.Fatalf("no script %q", name)
	}
	prefix := x.key("")
	return func(cmd []string) bool {
		if !strings.HasPrefix(strings.ToUpper(cmd[0]), "EVAL") || len(cmd) < 4 || !strings.HasPrefix(cmd[3], prefix+shape.first) {
			return false
		}
		n, err := strconv.Atoi(cmd[2])
		if err != nil || n > len(cmd)-3 {
			return false
		}
		keys := cmd[3 : 3+n]
		isClaim := func(key string) bool { return strings.HasPrefix(key, prefix+"claim:") }
		return slices.Contains(keys, prefix+"wake") == shape.wakes && slices.ContainsFunc(keys, isClaim) == shape.claim
	}
}
