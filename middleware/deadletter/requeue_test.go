package deadletter_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware/deadletter"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// bury makes dead letters: ids with their reasons, one after the other.
func (x *trial) bury(msgs ...zq.Message) {
	x.t.Helper()
	c := x.start(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error { return zq.Dead(d.Headers["reason"], errBoom) }))
	for _, m := range msgs {
		x.send(m)
		x.drained()
	}
	x.must(c.Stop(context.Background()))
}

func (x *trial) requeue(opts ...deadletter.RequeueOption) *deadletter.Requeue {
	x.t.Helper()
	r, err := deadletter.NewRequeue(x.look, append([]deadletter.RequeueOption{
		deadletter.RequeueLogger(slog.New(slog.DiscardHandler)),
	}, opts...)...)
	x.must(err)
	return r
}

func (x *trial) once(r *deadletter.Requeue) deadletter.Report {
	x.t.Helper()
	rep, err := r.Once(x.t.Context())
	x.must(err)
	return rep
}

func letter(id, kind, reason string) zq.Message {
	return zq.Message{ID: id, Kind: kind, Headers: map[string]string{"reason": reason}}
}

// Each filter keeps back what it should, and a dry run changes nothing.
func TestRequeueFilters(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		opts []deadletter.RequeueOption
		want string
	}{
		"none":    {nil, "a b c"},
		"reasons": {[]deadletter.RequeueOption{deadletter.Reasons("down", "slow")}, "a c"},
		"kinds":   {[]deadletter.RequeueOption{deadletter.Kinds("mail")}, "b c"},
		"both":    {[]deadletter.RequeueOption{deadletter.Reasons("down"), deadletter.Kinds("mail"), deadletter.Reasons("slow")}, "c"},
		"batch":   {[]deadletter.RequeueOption{deadletter.Batch(2)}, "a b"},
		"dry run": {[]deadletter.RequeueOption{deadletter.DryRun(), deadletter.Kinds("mail")}, "b c"},
		"age": {[]deadletter.RequeueOption{deadletter.MinAge(time.Hour), deadletter.Clock(func() time.Time {
			return time.Now().Add(time.Hour + time.Minute)
		}, time.After)}, "a b c"},
		"too young": {[]deadletter.RequeueOption{deadletter.MinAge(time.Hour)}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTrial(t)
			x.bury(letter("a", "order", "down"), letter("b", "mail", "fraud"), letter("c", "mail", "slow"))
			rep := x.once(x.requeue(c.opts...))
			if got := strings.Join(rep.IDs, " "); got != c.want || rep.Replayed != len(strings.Fields(c.want)) {
				t.Errorf("replayed %q, want %q: %+v", got, c.want, rep)
			}
			d, err := x.look.Depth(t.Context())
			x.must(err)
			if want := int64(rep.Replayed); name != "dry run" && d.Pending != want || name == "dry run" && d.Dead != 3 {
				t.Errorf("depth %+v after %+v", d, rep)
			}
		})
	}
}

// A message comes back as often as the cap allows, and no more; the count outlives the requeuer.
func TestRequeueCap(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	runs := make(chan int, 100)
	x.start(x.guard(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		runs <- d.Replays
		return errBoom
	})), func(c *zq.ConsumerConfig) { c.MaxAttempts = 1 })
	x.send(zq.Message{ID: "m"})
	x.must(x.rdb.ZAdd(t.Context(), "zq:{"+x.queue+"}:ready", redis.Z{Score: 1, Member: "plain"}).Err())
	for round := range 4 {
		zqtest.Eventually(t, limit, func() bool {
			d, err := x.look.Depth(t.Context())
			return err == nil && d.Dead == 2 && d.Claims == 0
		}, "both are dead")
		rep := x.once(x.requeue(deadletter.MaxReplays(2)))
		want := deadletter.Report{Looked: 2, Replayed: 2, Whole: true, IDs: []string{"plain", "m"}}
		if round >= 2 {
			want = deadletter.Report{Looked: 2, Capped: 2, Whole: true}
		}
		if rep.Looked != want.Looked || rep.Replayed != want.Replayed || rep.Capped != want.Capped || !rep.Whole || !slices.Equal(rep.IDs, want.IDs) {
			t.Errorf("round %d: %+v, want %+v", round, rep, want)
		}
	}
	if len(runs) != 6 {
		t.Errorf("%d runs, want 3 of each", len(runs))
	}
	x.dead("m attempts", "plain attempts")
}

// Messages of a key that died together run in their old order again, ahead of one that waits, although they died in
// another.
func TestRequeueKeepsOrder(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	for i, id := range []string{"c", "a", "b"} { // they die one by one, so that their deaths have another order
		score := int64([]int{3, 1, 2}[i])
		m := letter(id, "", "down")
		m.Key, m.Score = "k", &score
		x.bury(m)
	}
	waits := int64(4)
	x.send(zq.Message{ID: "d", Key: "k", Score: &waits})
	if rep := x.once(x.requeue()); strings.Join(rep.IDs, "") != "abc" {
		t.Errorf("replayed %q", rep.IDs)
	}
	ran := make(chan string, 10)
	x.start(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		ran <- d.ID
		return nil
	}))
	for _, want := range []string{"a", "b", "c", "d"} {
		if got := zqtest.Wait(t, ran, limit); got != want {
			t.Errorf("%s ran, want %s", got, want)
		}
	}
}

// Rounds go on where the last one ended, past what is kept back for good, and come round again.
func TestRequeueLooksOn(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	var all []zq.Message
	for i := range 9 {
		all = append(all, letter(fmt.Sprint(i), "", map[bool]string{true: "down", false: "fraud"}[i%4 == 3]))
	}
	x.bury(all...)
	r := x.requeue(deadletter.Reasons("down"), deadletter.Look(3))
	for round, want := range []deadletter.Report{
		{Looked: 3}, {Looked: 3, IDs: []string{"3"}}, {Looked: 3, IDs: []string{"7"}, Whole: true}, {Looked: 3}, {Looked: 3}, {Looked: 1, Whole: true},
	} {
		if rep := x.once(r); rep.Looked != want.Looked || !slices.Equal(rep.IDs, want.IDs) || rep.Whole != want.Whole {
			t.Errorf("round %d: %+v, want %+v", round, rep, want)
		}
	}
	if s := r.Stats(); s.Rounds != 6 || s.Failed != 0 || s.Looked != 16 || s.Replayed != 2 {
		t.Errorf("stats %+v", s)
	}
}

// Two requeuers at one queue: nobody fails, and each message comes back once a death, as often as was agreed.
func TestRequeueTwoAtOnce(t *testing.T) {
	t.Parallel()
	const n, replays = 60, 2
	x := newTrial(t)
	for i := range n {
		x.send(letter(fmt.Sprint("m", i), "", "down"))
	}
	team := []*deadletter.Requeue{
		x.requeue(deadletter.MaxReplays(replays), deadletter.Batch(7)), x.requeue(deadletter.MaxReplays(replays), deadletter.Batch(9)),
	}
	for death := range replays + 1 {
		c := x.start(zq.HandlerFunc(func(context.Context, *zq.Delivery) error { return zq.Dead("down", errBoom) }))
		x.drained()
		x.must(c.Stop(context.Background())) // so that none dies while they are at it
		reports := make(chan deadletter.Report, 1000)
		var hands sync.WaitGroup
		for _, r := range team {
			hands.Go(func() {
				for whole := false; !whole; {
					rep, err := r.Once(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					whole = rep.Whole
					reports <- rep
				}
			})
		}
		hands.Wait()
		close(reports)
		replayed, gone, capped := 0, 0, 0
		for rep := range reports {
			replayed, gone, capped = replayed+rep.Replayed, gone+rep.Gone, capped+rep.Capped
		}
		if death < replays && (replayed != n || capped != 0) || death == replays && (replayed != 0 || capped != len(team)*n) {
			t.Errorf("death %d: %d replayed, %d gone, %d capped", death, replayed, gone, capped)
		}
	}
	if c := x.counters(); c.Replayed != replays*n || c.Dead != (1+replays)*n {
		t.Errorf("counters %+v", c)
	}
}

// A round that is cut off says what it did.
func TestRequeueEnds(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	x.bury(letter("a", "", "down"))
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone home")
	cancel(gone)
	if _, err := x.requeue().Once(ctx); !errors.Is(err, gone) && !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	x.dead("a down")
}
