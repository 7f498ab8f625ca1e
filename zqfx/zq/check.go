package zq

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/internal/keys"
	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// check makes sure before anything is claimed that the server is new enough, and that every script runs with
// the rights of this user: on scratch keys beside the queue's, because a script that stops half way is not
// rolled back.
func (s *session) check(ctx context.Context) error {
	if err := checkVersion(ctx, s.rdb); err != nil {
		return err
	}
	if err := s.scripts.Load(ctx, s.rdb); err != nil && !redis.HasErrorPrefix(err, "NOPERM") {
		return err // without the right to load, EVALSHA falls back on EVAL
	}
	return s.rehearse(ctx)
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
	defer func() {
		// Left-overs of a rehearsal that was cut off; a name nobody uses again.
		_ = s.rdb.Del(context.WithoutCancel(ctx), k.All()...).Err()
	}()
	r := rehearsal{s: s, k: k, ctx: ctx}
	for _, step := range []func() error{r.enqueue, r.claimAll, r.settle, r.dead, r.look} {
		if err := step(); err != nil {
			return fmt.Errorf("rehearsal: %w", err)
		}
	}
	return nil
}

type rehearsal struct {
	s     *session
	k     keys.Keys
	ctx   context.Context //nolint:containedctx // lives as long as the rehearsal
	taken []script.Taken
}

const rehearsalClaim = "rehearsal"

func (r *rehearsal) enqueue() error {
	_, err := r.s.scripts.Enqueue(r.ctx, r.s.rdb, r.k, uuid.NewString(), []script.Placement{
		{ID: "a", Key: "k"}, {ID: "b", Key: "k"}, {ID: "c"}, {ID: "d"}, {ID: "e"}, {ID: "f"},
		{ID: "g", Due: script.After(time.Hour), Score: "1"},
	})
	return err
}

func (r *rehearsal) claimAll() error {
	call := script.ClaimCall{
		CID: rehearsalClaim, Entries: 10, Messages: 10, PerKey: 10, Lease: time.Minute, Suspects: true,
		Upkeep: r.s.upkeepRules(),
	}
	got, err := r.s.scripts.Claim(r.ctx, r.s.rdb, r.k, call)
	if err != nil {
		return err
	}
	if len(got.Messages) != 6 {
		return fmt.Errorf("claimed %d of 6 messages", len(got.Messages))
	}
	r.taken = got.Messages
	_, err = r.s.scripts.Heartbeat(r.ctx, r.s.rdb, r.k, time.Minute, []string{rehearsalClaim})
	return err
}

func (r *rehearsal) settle() error {
	m := map[string]string{}
	for _, t := range r.taken {
		m[t.Member[16:17]] = t.Member
	}
	effects := []script.Effect{{Name: "s", Verb: "set", Args: []any{"1"}}, {Name: "s", Verb: "equals", Args: []any{"1"}}}
	code, err := r.s.scripts.Checkpoint(r.ctx, r.s.rdb, r.k, uuid.NewString(), rehearsalClaim, m["a"], effects[:1])
	if err != nil || code != applied {
		return fmt.Errorf("checkpoint %d: %w", code, err)
	}
	call := script.SettleCall{
		CID: rehearsalClaim, GiveUp: true, DeadKeep: time.Hour, DeadMax: 10,
		Acks: []string{m["c"]}, Windowed: []script.Window{{Member: m["d"], Keep: time.Hour}},
		Others: []script.Outcome{
			script.AckWith(m["f"], time.Hour, effects, []script.Placement{{ID: "h", Key: "k"}}),
			script.Retry(m["a"], time.Hour, true, true, "rehearsed"),
			script.Dead(m["e"], "rehearsed", "", "continue"),
		},
	}
	got, err := r.s.scripts.Settle(r.ctx, r.s.rdb, r.k, &call)
	if err == nil && got.Applied != 5 {
		err = fmt.Errorf("settled %d of 5 outcomes", got.Applied)
	}
	return err
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
	_, _, err := r.s.scripts.Reap(r.ctx, r.s.rdb, r.k, r.s.upkeepRules())
	return err
}

func (r *rehearsal) look() error {
	_, problems, err := r.s.scripts.Verify(r.ctx, r.s.rdb, r.k, 100, 3)
	if err == nil && len(problems) > 0 {
		err = fmt.Errorf("inconsistent: %v", problems)
	}
	return err
}
