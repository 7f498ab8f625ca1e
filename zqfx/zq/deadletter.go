package zq

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
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
		Message: openMessage(m, envelope), Reason: s.Reason, Error: s.Error, Attempts: s.Attempts, Losses: s.Losses,
		Replays: s.Replays, Score: parseScore(s.Score), Sequence: m.Seq, EnqueuedAt: microsTime(m.Seq),
		DiedAt: microsTime(int64(diedAt)),
	}
}

// MaxPage is the most dead letters that one call lists.
const MaxPage = 1000

// DeadLetters lists up to n dead letters that died after since, oldest first. Go on with the DiedAt of the
// last; letters of one microsecond may come again.
func (i *Inspector) DeadLetters(ctx context.Context, since time.Time, n int) ([]DeadLetter, error) {
	if n < 1 || n > MaxPage {
		return nil, invalid("count", n, fmt.Sprintf("1 to %d", MaxPage))
	}
	least := "-inf"
	if !since.IsZero() {
		least = strconv.FormatInt(since.UnixMicro(), 10)
	}
	found, err := i.rdb.ZRangeArgsWithScores(ctx, redis.ZRangeArgs{
		Key: i.keys.Dead, ByScore: true, Start: least, Stop: "+inf", Count: int64(n),
	}).Result()
	if err != nil || len(found) == 0 {
		return nil, wrap(err, "dead letters of "+i.queue)
	}
	members, fields := make([]string, len(found)), make([]string, len(found))
	for j, z := range found {
		members[j], _ = z.Member.(string)
		fields[j] = field(members[j])
	}
	var stories, envelopes *redis.SliceCmd
	if _, err := i.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		stories, envelopes = p.HMGet(ctx, i.keys.DeadInfo, fields...), p.HMGet(ctx, i.keys.Msg, fields...)
		return nil
	}); err != nil {
		return nil, wrap(err, "dead letters of "+i.queue)
	}
	out := make([]DeadLetter, 0, len(found))
	for j := range found {
		story, there := stories.Val()[j].(string)
		if !there {
			continue // replayed or removed between the two reads
		}
		envelope, _ := envelopes.Val()[j].(string)
		out = append(out, readLetter(members[j], found[j].Score, envelope, script.ReadStory(story)))
	}
	return out, nil
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
	f, err := i.scripts.Find(ctx, i.rdb, i.keys, id)
	if err != nil {
		return wrap(err, doing)
	}
	if f.Letter == "" || f.Letter == "o" {
		return wrap(ErrNotFound, doing)
	}
	token := uuid.NewString()
	var got script.Replayed
	err = again(ctx, func(ctx context.Context) (err error) {
		got, err = i.scripts.Replay(ctx, i.rdb, i.keys, token, f.Member, cfg.atEnd)
		return err
	})
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
	f, err := i.scripts.Find(ctx, i.rdb, i.keys, id)
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
	_, err = i.scripts.RemoveDead(ctx, i.rdb, i.keys, f.Member)
	return wrap(err, doing)
}
