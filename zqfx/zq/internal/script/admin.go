package script

import (
	"context"
	"strings"

	"github.com/zqueue/zqueue/zqfx/zq/internal/keys"
)

// Pause stops or restarts claiming; it says whether that changed anything.
func (s *Set) Pause(ctx context.Context, c Run, k keys.Keys, on bool) (bool, error) {
	reply, err := s.pause.run(ctx, c, []string{k.Meta, k.Wake}, []any{flag(on)})
	return number(reply) == 1, err
}

// ResumeKey lets a halted or paused key go on; it says whether it was either.
func (s *Set) ResumeKey(ctx context.Context, c Run, k keys.Keys, key string) (bool, error) {
	names := []string{k.Locks, k.Ready, k.Suspect, k.Retry, k.Wake, k.Holds, k.Since}
	reply, err := s.resumeKey.run(ctx, c, names, []any{k.LanePrefix, key})
	return number(reply) == 1, err
}

// Replayed is what became of a replay: done, or the letter of the state that the message is in instead.
type Replayed struct {
	Done  bool
	State string // "" when there is no such message
}

// Replay sends a dead letter back to work. token names the call, as in Enqueue.
func (s *Set) Replay(ctx context.Context, c Run, k keys.Keys, token, member string, atEnd bool) (Replayed, error) {
	names := []string{
		k.Dead, k.DeadInfo, k.Msg, k.Retry, k.Locks, k.Ready, k.Suspect, k.Delayed, k.Wake, k.Meta, k.Stats, k.Ops, k.OpsAt,
		k.Holds, k.Since,
	}
	order := "original"
	if atEnd {
		order = "now"
	}
	reply, err := s.replay.run(ctx, c, names, []any{token, k.LanePrefix, member, order})
	if err != nil {
		return Replayed{}, err
	}
	answer := text(reply)
	return Replayed{Done: answer == "p", State: strings.TrimPrefix(answer, "l")}, nil
}

// RemoveDead drops a dead letter for good; it says whether it was there.
func (s *Set) RemoveDead(ctx context.Context, c Run, k keys.Keys, member string) (bool, error) {
	reply, err := s.removeDead.run(ctx, c, []string{k.Dead, k.DeadInfo, k.Msg, k.Stats, k.Retry, k.Progress, k.Cancels}, []any{member})
	return number(reply) == 1, err
}
