package idempotency

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware/internal/luascript"
)

// plan is the entries of one batched call, sorted by shard.
type plan struct {
	answers []Answer
	calls   []luascript.Call
	places  [][]int // of each call's entries, among the answers
}

// plan sorts n entries by shard, in their order. An invalid one has its answer at once and is not sent.
func (s *RedisStore) plan(n int, answers []Answer, entry func(i int) (Name, []any, error)) *plan {
	p := &plan{answers: answers}
	call := make(map[uint32]int)
	for i := range n {
		name, args, err := entry(i)
		if n > MaxBatch {
			err = invalid("idempotency batch", n, fmt.Sprintf("at most %d", MaxBatch))
		}
		if err != nil {
			answers[i].Err = err
			continue
		}
		key, shard := s.key(name)
		at, known := call[shard]
		if !known {
			at = len(p.calls)
			call[shard] = at
			p.calls, p.places = append(p.calls, luascript.Call{}), append(p.places, nil)
		}
		p.calls[at].Keys = append(p.calls[at].Keys, key)
		p.calls[at].Args = append(p.calls[at].Args, args...)
		p.places[at] = append(p.places[at], i)
	}
	return p
}

// run makes the calls. A reply has head values for the call, then one for every entry: 1 for a plain grant, which
// leaves nothing to read, or a list of words.
func (p *plan) run(
	ctx context.Context, rdb redis.UniversalClient, s luascript.Script, head int, read func(head, words []any, a *Answer),
) {
	if len(p.calls) == 0 {
		return
	}
	for i, cmd := range s.Run(ctx, rdb, p.calls) {
		reply, err := cmd.Slice()
		if want := head + len(p.places[i]); err == nil && len(reply) != want {
			err = fmt.Errorf("the script answered %d values, want %d", len(reply), want)
		}
		for j, place := range p.places[i] {
			a := &p.answers[place]
			if err != nil {
				a.Err = fmt.Errorf("idempotency: %w", err)
				continue
			}
			if words, long := reply[head+j].([]any); long {
				read(reply[:head], words, a)
			} else {
				a.Granted = true
			}
		}
	}
}

// read takes what both scripts say of an entry: y, n or x, and the record that was found.
func (a *Answer) read(words []any) {
	a.Record, a.Err = readRecord(text(words[1]))
	a.Granted = text(words[0]) == "y" && a.Err == nil
	if text(words[0]) == "x" {
		a.Err = errForeign
	}
}

// fault is what is wrong with a claim.
func (c *Claim) fault() error {
	return errors.Join(nameFault(c.Name), ownerFault(c.Owner), keepFault("claim.for", c.For))
}

// fault is what is wrong with an ending.
func (e *Ending) fault() error {
	faults := []error{nameFault(e.Name), ownerFault(e.Owner)}
	switch e.State {
	case StateNone:
	case StateDone, StateFailed:
		faults = append(faults, keepFault("ending.keep", e.Keep))
	default:
		faults = append(faults, invalid("ending.state", strconv.Quote(string(e.State)), "done, failed or none"))
	}
	return errors.Join(append(faults, resultFault(e.Result))...)
}

// letter is the ending's state as the script has it, and what is kept with it.
func (e *Ending) letter() (letter string, payload any) {
	switch {
	case e.State == StateDone:
		return letterDone, e.Result
	case e.State == StateNone:
		return letterClear, ""
	case e.Held:
		return letterHeld, e.Error
	}
	return letterFailed, e.Error
}

func nameFault(n Name) error {
	if !validScope(n.Scope) {
		return invalid("idempotency scope", strconv.Quote(n.Scope), scopeWant)
	}
	if n.Key == "" || len(n.Key) > MaxKey {
		return invalid("idempotency key", fmt.Sprintf("%d bytes", len(n.Key)), fmt.Sprintf("1 to %d bytes", MaxKey))
	}
	return nil
}

func ownerFault(o Owner) error {
	if o.Message == "" || o.Fence < 0 || o.Fence > MaxFence {
		return invalid("idempotency owner", fmt.Sprintf("%q, fence %d", o.Message, o.Fence),
			fmt.Sprintf("a message's name and a fence from 0 to %d", MaxFence))
	}
	return nil
}

func keepFault(field string, d time.Duration) error {
	if d < time.Millisecond || d > MaxTTL {
		return invalid(field, d, fmt.Sprintf("1ms to %s", MaxTTL))
	}
	return nil
}

func resultFault(result []byte) error {
	if len(result) > MaxResult {
		return invalid("idempotency result", fmt.Sprintf("%d bytes", len(result)), fmt.Sprintf("at most %d bytes", MaxResult))
	}
	return nil
}
