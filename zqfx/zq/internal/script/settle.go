package script

import (
	"context"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq/internal/keys"
)

// Effect is one literal Redis verb, or a precondition, on a key of the queue's own namespace.
type Effect struct {
	Name, Verb string
	Args       []any
}

func appendEffects(args []any, list []Effect) []any {
	for _, e := range list {
		args = append(args, e.Name, e.Verb, len(e.Args))
		args = append(args, e.Args...)
	}
	return args
}

// Window is an ack that leaves a dedupe record.
type Window struct {
	Member string
	Keep   time.Duration
}

// Outcome is any settlement but a plain ack. Build it with AckWith, Retry, Dead or Cancel.
type Outcome struct {
	Member, verb string
	args         []any
}

// AckWith is an ack with effects and follow-up messages in the same atomic step, and with delayed messages that it
// brings forward, by their ids.
func AckWith(member string, keep time.Duration, effects []Effect, follow []Placement, rouse ...string) Outcome {
	args := make([]any, 0, 4+4*len(effects)+5*len(follow)+len(rouse))
	args = append(args, keep.Microseconds(), len(effects), len(follow), len(rouse))
	args = appendPlacements(appendEffects(args, effects), follow)
	for _, id := range rouse {
		args = append(args, id)
	}
	return Outcome{Member: member, verb: "ack", args: args}
}

// Retry gives a message back: after a delay, with or without an attempt charged, with or without its key
// waiting for it. trace, if any, is kept for the next run.
func Retry(member string, delay time.Duration, charge, block bool, errText, trace string) Outcome {
	return Outcome{Member: member, verb: "retry", args: []any{
		delay.Microseconds(), flag(charge), flag(block), errText, trace,
	}}
}

// Dead makes a message a dead letter. onDeath says what becomes of its key: continue, halt or key.
func Dead(member, reason, errText, onDeath, trace string) Outcome {
	return Outcome{Member: member, verb: "dead", args: []any{reason, errText, onDeath, trace}}
}

// Cancel ends a message that an operator has cancelled.
func Cancel(member string) Outcome { return Outcome{Member: member, verb: "cancel"} }

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// SettleCall holds the outcomes of messages of one claim.
type SettleCall struct {
	CID      string
	Acks     []string
	Windowed []Window
	Others   []Outcome
	GiveUp   bool // after the outcomes, give back whatever the claim still holds
	DeadKeep time.Duration
	DeadMax  int
	DoneMax  int // dedupe records that are kept at most
}

// Len counts the outcomes.
func (c *SettleCall) Len() int { return len(c.Acks) + len(c.Windowed) + len(c.Others) }

// Codes of outcomes that did not take effect.
const (
	CodeRepeat = 0  // settled before: the reply was lost
	CodeLost   = -1 // the lease is over; somebody else may hold the message
)

// Refusal is an outcome that did not take effect. Index counts acks, then windowed, then others. A code
// above 0 is one more than the place of the effect that may not be applied.
type Refusal struct {
	Index, Code int
}

// Settled is the answer to a SettleCall.
type Settled struct {
	Applied int
	Rest    []Refusal
}

// Settle records outcomes. Each takes effect only if the claim still holds its message.
func (s *Set) Settle(ctx context.Context, c Run, k keys.Keys, call *SettleCall) (Settled, error) {
	names := []string{
		k.Claim(call.CID), k.Leases, k.Msg, k.Retry, k.Done, k.Locks, k.Ready, k.Delayed, k.Suspect, k.Dead, k.DeadInfo,
		k.Reaped, k.Wake, k.Meta, k.Stats, k.Holds, k.Since, k.Cancels, k.Progress,
	}
	reply, err := s.settle.run(ctx, c, names, settleArgs(k, call))
	if err != nil {
		return Settled{}, err
	}
	f, err := list("settle", reply, 1)
	if err != nil {
		return Settled{}, err
	}
	out := Settled{Applied: int(number(f[0]))}
	for i := 1; i+1 < len(f); i += 2 {
		out.Rest = append(out.Rest, Refusal{Index: int(number(f[i])) - 1, Code: int(number(f[i+1]))})
	}
	return out, nil
}

func settleArgs(k keys.Keys, call *SettleCall) []any {
	args := make([]any, 0, 10+len(call.Acks)+2*len(call.Windowed)+8*len(call.Others))
	args = append(args, call.CID, k.LanePrefix, k.EffectPrefix, flag(call.GiveUp), call.DeadKeep.Microseconds(),
		call.DeadMax, call.DoneMax, len(call.Acks), len(call.Windowed), len(call.Others))
	for _, m := range call.Acks {
		args = append(args, m)
	}
	for _, w := range call.Windowed {
		args = append(args, w.Member, w.Keep.Microseconds())
	}
	for _, o := range call.Others {
		args = append(args, o.Member, o.verb, len(o.args))
		args = append(args, o.args...)
	}
	return args
}

// Checkpoint applies effects while the claim still holds the message. It answers like a Refusal's code, or 1
// when they are applied. token names the call, as in Enqueue.
func (s *Set) Checkpoint(ctx context.Context, c Run, k keys.Keys, token, cid, member string, effects []Effect) (int, error) {
	args := appendEffects([]any{token, cid, member, k.EffectPrefix, len(effects)}, effects)
	reply, err := s.checkpoint.run(ctx, c, []string{k.Claim(cid), k.Leases, k.Ops, k.OpsAt, k.Stats}, args)
	if err != nil {
		return 0, err
	}
	return int(number(reply)), nil
}
