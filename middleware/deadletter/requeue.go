package deadletter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Letters is what a Requeue needs of a zq.Inspector.
type Letters interface {
	EachDeadLetter(ctx context.Context, since time.Time) iter.Seq2[zq.DeadLetter, error]
	DeadLetter(ctx context.Context, id string) (zq.DeadLetter, error)
	Replay(ctx context.Context, id string, opts ...zq.ReplayOption) error
}

// Requeue sends dead letters back to work, each as often as MaxReplays allows. It is safe for concurrent use, and any
// number of processes may do so for one queue: a dead letter that another one was quicker with is left alone. The cap
// is looked up again right before each replay; only a message that runs and dies once more within that round trip can
// come back once too often for each process beside this one.
//
// A round takes the dead letters oldest death first, at most Batch of them, and replays those in the order of their
// old places, into these places. So a key's messages that died together run in their order again, ahead of what waits
// behind them; what has run since is not undone. Letters that a filter keeps back do not hold up the others, not even
// those of their key.
type Requeue struct {
	letters Letters
	cfg     requeueConfig
	rounds  chan struct{} // holds one while a round is under way
	from    time.Time     // where the next round begins to look: deaths before it were looked at. The round's own

	mu    sync.Mutex
	stats RequeueStats
}

// Report says what a round did.
type Report struct {
	Looked   int // dead letters that it looked at
	Replayed int // of them sent back to work; with DryRun, that would have been
	Gone     int // that were no dead letters any more: somebody else was quicker
	Capped   int // kept back by MaxReplays alone
	// IDs of the replayed ones, in order.
	IDs []string
	// Whole says that it looked at the last dead letter; otherwise the next round goes on where this one ended.
	Whole bool
}

// NewRequeue makes a Requeue. It lists all that is wrong with its arguments, as *zq.InvalidError, does no I/O and
// starts nothing. letters is the queue's *zq.Inspector.
func NewRequeue(letters Letters, opts ...RequeueOption) (*Requeue, error) {
	cfg, err := newRequeueConfig(opts)
	if i, ok := letters.(*zq.Inspector); letters == nil || ok && i == nil {
		err = errors.Join(invalid("deadletter.NewRequeue letters", "nil", "a *zq.Inspector"), err)
	}
	if err != nil {
		return nil, err
	}
	return &Requeue{letters: letters, cfg: cfg, rounds: make(chan struct{}, 1)}, nil
}

// Once makes one round. After an error, the report says what was done until then. Calls do not overlap: one waits for
// another, or for the end of ctx, whose cause it returns.
func (r *Requeue) Once(ctx context.Context) (Report, error) {
	select {
	case r.rounds <- struct{}{}:
		defer func() { <-r.rounds }()
	case <-ctx.Done():
		return Report{}, context.Cause(ctx)
	}
	var rep Report
	chosen, next, err := r.choose(ctx, &rep)
	if err == nil {
		err = r.replayAll(ctx, chosen, &rep)
	}
	if err == nil {
		r.from = next
	} else {
		err = fmt.Errorf("deadletter: requeue: %w", err)
	}
	r.count(rep, err)
	return rep, err
}

// candidate is what a round remembers of a dead letter; bodies are not kept.
type candidate struct {
	id      string
	score   float64
	seq     int64
	diedAt  time.Time
	replays int
}

// choose walks the dead letters until it has enough, and says where the next round goes on. It stops only between two
// instants of death, or with a full batch that will be gone from there, so that none is looked at for ever while
// others wait behind it.
func (r *Requeue) choose(ctx context.Context, rep *Report) (chosen []candidate, next time.Time, err error) {
	now := r.cfg.now()
	var last time.Time
	for l, err := range r.letters.EachDeadLetter(ctx, r.from) {
		if err != nil {
			return nil, next, err
		}
		later := l.DiedAt.After(last)
		if len(chosen) >= r.cfg.batch && (later || !r.cfg.dryRun) || rep.Looked >= r.cfg.look && later {
			return chosen, l.DiedAt, nil
		}
		last = l.DiedAt
		rep.Looked++
		switch {
		case !r.cfg.wants(&l, now):
		case l.Replays >= r.cfg.maxReplays:
			rep.Capped++
		default:
			chosen = append(chosen, candidate{l.Message.ID, l.Score, l.Sequence, l.DiedAt, l.Replays})
		}
	}
	rep.Whole = true
	return chosen, time.Time{}, nil
}

// replayAll replays in the order of the old places: then no message of a key is overtaken by one that died earlier.
func (r *Requeue) replayAll(ctx context.Context, chosen []candidate, rep *Report) error {
	slices.SortStableFunc(chosen, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.seq, b.seq), cmp.Compare(a.id, b.id))
	})
	for _, c := range chosen {
		err := r.replay(ctx, c)
		switch {
		case errors.Is(err, zq.ErrLive), errors.Is(err, zq.ErrNotFound), errors.Is(err, errOther):
			rep.Gone++
		case err != nil:
			return err
		default:
			rep.Replayed++
			rep.IDs = append(rep.IDs, c.id)
		}
	}
	return nil
}

// errOther says that the letter is not the one that was chosen: the message has run and died again meanwhile.
var errOther = errors.New("the message has died again")

func (r *Requeue) replay(ctx context.Context, c candidate) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	now, err := r.letters.DeadLetter(ctx, c.id)
	if err != nil {
		return err
	}
	if now.Replays != c.replays || !now.DiedAt.Equal(c.diedAt) {
		return errOther
	}
	if r.cfg.dryRun {
		return nil
	}
	return r.letters.Replay(ctx, c.id, r.cfg.replay...)
}
