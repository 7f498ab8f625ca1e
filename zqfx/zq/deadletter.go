package zq

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/internal/member"
	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// DeadLetter is a message that will not run again unless it is replayed. Its bytes are as they were enqueued.
type DeadLetter struct {
	Message Message
	// Reason is a short word, one of the Reason constants or what the handler gave; Error is the last error's
	// text, clipped.
	Reason, Error string
	// Trace is what its last run left with Delivery.Leave.
	Trace string
	// Attempts are the runs that failed, Losses those whose worker died, Replays its earlier returns.
	Attempts, Losses, Replays int
	// Score is its place in the order before it died; Sequence and EnqueuedAt tell when it came.
	Score      float64
	Sequence   int64
	EnqueuedAt time.Time
	// DiedAt is when it became a dead letter.
	DiedAt time.Time
}

func readLetter(raw string, diedAt float64, envelope string, s script.Story) DeadLetter {
	m := member.Parse(raw)
	return DeadLetter{
		Message: openMessage(m, envelope), Reason: s.Reason, Error: s.Error, Trace: s.Trace, Attempts: s.Attempts, Losses: s.Losses,
		Replays: s.Replays, Score: parseScore(s.Score), Sequence: m.Seq, EnqueuedAt: microsTime(m.Seq),
		DiedAt: microsTime(int64(diedAt)),
	}
}

// MaxPage is the most dead letters that one call of DeadLetters lists.
const MaxPage = 1000

// How many dead letters one step of a walk reads; their bodies come with them.
const deadPage = 100

// DeadLetters lists the first n dead letters, 1 to MaxPage, that died at since or later, oldest first.
func (i *Inspector) DeadLetters(ctx context.Context, since time.Time, n int) ([]DeadLetter, error) {
	if n < 1 || n > MaxPage {
		return nil, invalid("count", n, fmt.Sprintf("1 to %d", MaxPage))
	}
	var out []DeadLetter
	for l, err := range i.EachDeadLetter(ctx, since) {
		if err != nil {
			return out, err
		}
		if out = append(out, l); len(out) == n {
			break
		}
	}
	return out, nil
}

// EachDeadLetter walks the dead letters that died at since or later, oldest first. One that is there from the
// walk's start to its end comes once; the walk holds nothing up, and replaying on the way is fine.
func (i *Inspector) EachDeadLetter(ctx context.Context, since time.Time) iter.Seq2[DeadLetter, error] {
	return func(yield func(DeadLetter, error) bool) {
		from := int64(0)
		if !since.IsZero() {
			from = since.UnixMicro()
		}
		seen := map[string]bool{} // of those that died at from: many can die in one microsecond
		for {
			page, full, err := i.deadFrom(ctx, from, deadPage+len(seen))
			if err != nil {
				yield(DeadLetter{}, wrap(err, "dead letters of "+i.queue))
				return
			}
			for _, d := range page {
				if seen[d.member] {
					continue
				}
				if d.at > from {
					from, seen = d.at, map[string]bool{}
				}
				seen[d.member] = true
				if d.there && !yield(d.letter, nil) {
					return
				}
			}
			if !full {
				return
			}
		}
	}
}

// deadMember is a dead letter as a walk finds it; there is false when it went between two reads.
type deadMember struct {
	member string
	at     int64
	letter DeadLetter
	there  bool
}

// deadFrom reads up to n dead letters; full says that there may be more.
func (i *Inspector) deadFrom(ctx context.Context, from int64, n int) (page []deadMember, full bool, err error) {
	found, err := i.rdb.ZRangeArgsWithScores(ctx, redis.ZRangeArgs{
		Key: i.keys.Dead, ByScore: true, Start: strconv.FormatInt(from, 10), Stop: "+inf", Count: int64(n),
	}).Result()
	if err != nil || len(found) == 0 {
		return nil, false, err
	}
	page, fields := make([]deadMember, len(found)), make([]string, len(found))
	for j, z := range found {
		page[j].member, _ = z.Member.(string)
		page[j].at = int64(z.Score)
		fields[j] = field(page[j].member)
	}
	var stories, envelopes *redis.SliceCmd
	if _, err := i.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		stories, envelopes = p.HMGet(ctx, i.keys.DeadInfo, fields...), p.HMGet(ctx, i.keys.Msg, fields...)
		return nil
	}); err != nil {
		return nil, false, err
	}
	for j := range page {
		story, there := stories.Val()[j].(string)
		envelope, _ := envelopes.Val()[j].(string)
		page[j].there = there
		page[j].letter = readLetter(page[j].member, found[j].Score, envelope, script.ReadStory(story))
	}
	return page, len(found) == n, nil
}

// field is the name under which a member's hashes are kept.
func field(raw string) string {
	m := member.Parse(raw)
	if m.Plain {
		return "\x02" + raw
	}
	return m.ID
}

// DeadLetter gets one dead letter. ErrNotFound if there is no such message, ErrLive if it is not dead.
func (i *Inspector) DeadLetter(ctx context.Context, id string) (DeadLetter, error) {
	info, err := i.Message(ctx, id)
	if err != nil {
		return DeadLetter{}, err
	}
	if info.Dead == nil {
		return DeadLetter{}, wrap(ErrLive, "dead letter "+i.queue+"/"+id+" is "+string(info.State))
	}
	return *info.Dead, nil
}

// ReplayOption configures Replay.
type ReplayOption interface{ applyReplay(*replayConfig) }

type replayConfig struct{ atEnd bool }

type replayOption func(*replayConfig)

func (f replayOption) applyReplay(c *replayConfig) { f(c) }

// ReplayAtEnd puts the message behind those that are there now, instead of into its old place.
func ReplayAtEnd() ReplayOption { return replayOption(func(c *replayConfig) { c.atEnd = true }) }

// Replay sends a dead letter back to work: same id, key, headers and body, fresh attempts, its last error
// kept. It takes its old place in the order unless told otherwise. ErrNotFound if there is no such message,
// ErrLive if it is not dead, as after a replay.
func (i *Inspector) Replay(ctx context.Context, id string, opts ...ReplayOption) error {
	var cfg replayConfig
	for _, o := range opts {
		o.applyReplay(&cfg)
	}
	doing := "replay " + i.queue + "/" + clip(id, MaxID)
	at, f, err := i.find(ctx, id)
	if err != nil {
		return wrap(err, doing)
	}
	if f.Letter == "" || f.Letter == "o" {
		return wrap(ErrNotFound, doing)
	}
	token := i.tokens.take()
	var got script.Replayed
	err = again(ctx, func(ctx context.Context) (err error) {
		got, err = i.scripts.Replay(ctx, i.rdb, at, token.String(), f.Member, cfg.atEnd)
		return err
	})
	i.tokens.give(token, err)
	switch {
	case err != nil:
		return wrap(err, doing)
	case got.Done:
		return nil
	case got.State == "":
		return wrap(ErrNotFound, doing)
	}
	return wrap(ErrLive, doing+": it is "+string(stateOf(got.State)))
}

// RemoveDead drops a dead letter for good. ErrNotFound if there is no such message, ErrLive if it is not dead.
func (i *Inspector) RemoveDead(ctx context.Context, id string) error {
	doing := "remove dead letter " + i.queue + "/" + clip(id, MaxID)
	at, f, err := i.find(ctx, id)
	if err != nil {
		return wrap(err, doing)
	}
	switch f.Letter {
	case "", "o":
		return wrap(ErrNotFound, doing)
	case "x":
	default:
		return wrap(ErrLive, doing)
	}
	_, err = i.scripts.RemoveDead(ctx, i.rdb, at, f.Member)
	return wrap(err, doing)
}
