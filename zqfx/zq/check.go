package zq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/internal/keys"
	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// check makes sure before anything is claimed that the server is new enough, that the queue is not a newer
// library's, and that every script runs with the rights of this user: on scratch keys beside the queue's,
// because a script that stops half way is not rolled back.
func (s *session) check(ctx context.Context) error {
	if err := checkVersion(ctx, s.rdb); err != nil {
		return err
	}
	if err := s.checkLayout(ctx); err != nil {
		return err
	}
	if err := s.scripts.Load(ctx, s.rdb); err != nil && !redis.HasErrorPrefix(err, "NOPERM") {
		return err // without the right to load, EVALSHA falls back on EVAL
	}
	err := s.rehearse(ctx)
	if redis.HasErrorPrefix(err, "OOM ") {
		// A queue that fills its store must be worked off, and nothing can be rehearsed before.
		s.log.log.Warn("zq: redis is out of memory; starting without a rehearsal", "error", err)
		return nil
	}
	return err
}

// checkLayout refuses a queue that a newer library wrote. Claims do so too; this is for an error at the start.
func (s *session) checkLayout(ctx context.Context) error {
	layout, err := s.rdb.HGet(ctx, s.keys.Meta, "layout").Result()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if n, bad := strconv.Atoi(layout); err == nil && (bad != nil || n > script.Layout) {
		return fmt.Errorf("%w: layout %s, this one knows %d", ErrNewerLayout, clip(layout, 40), script.Layout)
	}
	return err
}

// checkVersion reads the server's version, where it may be asked.
func checkVersion(ctx context.Context, rdb redis.UniversalClient) error {
	info, err := rdb.Info(ctx, "server").Result()
	if err != nil {
		if transient(err) {
			return err
		}
		return rdb.Ping(ctx).Err() // not allowed to ask, or unknown to this server: the scripts will tell
	}
	for line := range strings.Lines(info) {
		version, ok := strings.CutPrefix(strings.TrimSpace(line), "redis_version:")
		if !ok {
			continue
		}
		major, _, _ := strings.Cut(version, ".")
		if n, err := strconv.Atoi(major); err == nil && n < 7 {
			return fmt.Errorf("%w: this is %s", ErrOldServer, version)
		}
	}
	return nil
}

// rehearse runs a message's whole life on scratch keys.
func (s *session) rehearse(ctx context.Context) error {
	k := keys.Scratch(s.queue, 0, uuid.NewString())
	if err := s.rdb.Del(ctx, k.All()...).Err(); err != nil {
		return fmt.Errorf("rehearsal: %w", err) // what is not allowed to clear up had better not begin
	}
	defer s.clear(context.WithoutCancel(ctx), k)
	r := rehearsal{s: s, k: k, ctx: ctx}
	for _, step := range []func() error{r.enqueue, r.wake, r.claimAll, r.settle, r.dead, r.expire, r.look} {
		if err := step(); err != nil {
			return fmt.Errorf("rehearsal: %w", err)
		}
	}
	return nil
}

// clear drops the left-overs of a rehearsal, which may have been cut off: under a name nobody uses again. Of its history
// it knows the hour by the server's clock.
func (s *session) clear(ctx context.Context, k keys.Keys) {
	names := k.All()
	if now, err := s.rdb.Time(ctx).Result(); err == nil {
		hour := now.Unix() / 3600
		names = append(names, k.History(hour), k.History(hour-1))
	}
	_ = s.rdb.Del(ctx, names...).Err()
}

type rehearsal struct {
	s     *session
	k     keys.Keys
	ctx   context.Context //nolint:containedctx // lives as long as the rehearsal
	taken []script.Taken
}

const rehearsalClaim = "rehearsal"

func (r *rehearsal) enqueue() error {
	_, err := r.s.scripts.Enqueue(r.ctx, r.s.rdb, r.k, 0, uuid.NewString(), []script.Placement{
		{ID: "a", Key: "k"}, {ID: "b", Key: "k"}, {ID: "c"}, {ID: "d"}, {ID: "e"}, {ID: "f"},
		{ID: "g", Due: script.After(time.Hour), Score: "1"},
	})
	return err
}

// wake takes the marker that enqueue has set.
func (r *rehearsal) wake() error {
	if r.s.sleeper == nil {
		return nil
	}
	if err := r.s.sleeper.BZPopMin(r.ctx, time.Second, r.k.Wake).Err(); err != nil {
		return fmt.Errorf("wait for the wake-up marker: %w", err)
	}
	return nil
}

func (r *rehearsal) claim(lease time.Duration) (script.Claimed, error) {
	return r.s.scripts.Claim(r.ctx, r.s.rdb, r.k, script.ClaimCall{
		CID: rehearsalClaim, Entries: 10, Messages: 10, PerKey: 10, Lease: lease, Suspects: true,
		Upkeep: r.s.upkeepRules(),
	})
}

func (r *rehearsal) claimAll() error {
	got, err := r.claim(time.Minute)
	if err != nil {
		return err
	}
	if len(got.Messages) != 6 {
		return fmt.Errorf("claimed %d of 6 messages", len(got.Messages))
	}
	r.taken = got.Messages
	_, err = r.s.scripts.Heartbeat(r.ctx, r.s.rdb, r.k, time.Minute, script.Worker{ID: "w"}, []string{rehearsalClaim})
	return err
}

func (r *rehearsal) settle() error {
	m := map[string]string{}
	for _, t := range r.taken {
		m[t.Member[16:17]] = t.Member
	}
	writes, checks := rehearsalEffects()
	code, err := r.s.scripts.Checkpoint(r.ctx, r.s.rdb, r.k, uuid.NewString(), rehearsalClaim, m["a"], writes)
	if err == nil && code != applied {
		err = fmt.Errorf("checkpoint answered %d", code)
	}
	if err != nil {
		return err
	}
	call := script.SettleCall{
		CID: rehearsalClaim, GiveUp: true, DeadKeep: time.Hour, DeadMax: 10,
		Acks: []string{m["c"]}, Windowed: []script.Window{{Member: m["d"], Keep: time.Hour}},
		Others: []script.Outcome{
			script.AckWith(m["f"], time.Hour, checks, []script.Placement{{ID: "h", Key: "k"}}, "g"),
			script.Retry(m["a"], time.Hour, true, true, "rehearsed", "t"),
			script.Dead(m["e"], "rehearsed", "", "continue", "t"),
		},
	}
	got, err := r.s.scripts.Settle(r.ctx, r.s.rdb, r.k, &call)
	if err == nil && got.Applied != 5 {
		err = fmt.Errorf("settled %d of 5 outcomes", got.Applied)
	}
	return err
}

// rehearsalEffects are all verbs there are, and then all preconditions, on keys that keys.All names.
func rehearsalEffects() (writes, checks []script.Effect) {
	e := func(name, verb string, args ...any) script.Effect {
		return script.Effect{Name: name, Verb: verb, Args: args}
	}
	writes = []script.Effect{
		e("s", "set", "1"), e("s", "pexpire", "60000"), e("n", "incrby", "1"), e("h", "hset", "f", "1"),
		e("h", "hincrby", "n", "1"), e("h", "hdel", "g"), e("t", "sadd", "m"), e("t", "srem", "o"), e("z", "zadd", "1", "m"),
		e("z", "zrem", "o"), e("l", "rpush", "v"), e("l", "ltrim", "0", "-1"), e("d", "del"),
	}
	checks = []script.Effect{
		e("s", "exists"), e("s", "equals", "1"), e("h", "hequals", "f", "1"), e("h", "habsent", "g"), e("l", "length", "1"),
		e("d", "absent"),
	}
	return writes, checks
}

// dead brings the dead letter back and drops a second one.
func (r *rehearsal) dead() error {
	for _, t := range r.taken {
		if t.Member[16:] != "e" {
			continue
		}
		if _, err := r.s.scripts.Replay(r.ctx, r.s.rdb, r.k, uuid.NewString(), t.Member, true); err != nil {
			return err
		}
		if _, err := r.s.scripts.RemoveDead(r.ctx, r.s.rdb, r.k, t.Member); err != nil {
			return err
		}
	}
	return nil
}

// expire lets a claim's lease run out.
func (r *rehearsal) expire() error {
	if _, err := r.claim(0); err != nil {
		return err
	}
	reaped, _, err := r.s.scripts.Reap(r.ctx, r.s.rdb, r.k, r.s.upkeepRules())
	if err == nil && reaped != 1 {
		err = fmt.Errorf("reaped %d of 1 claim", reaped)
	}
	return err
}

func (r *rehearsal) look() error {
	_, problems, err := r.s.scripts.Verify(r.ctx, r.s.rdb, r.k, 100, 3)
	if err == nil && len(problems) > 0 {
		err = fmt.Errorf("inconsistent: %v", problems)
	}
	return err
}
