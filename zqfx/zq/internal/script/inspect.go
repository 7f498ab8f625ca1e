package script

import (
	"context"
	"strconv"

	"github.com/zqueue/zqueue/zqfx/zq/internal/keys"
)

// Found is one message as it lies in the store. Letter "" means unknown, "o" done.
type Found struct {
	Letter, Member, Score, Envelope string
	DoneUntil                       int64 // microseconds; only for "o"
	Record                          Record
	Story                           Story
	Lock                            string
}

// Find looks a message up by id.
func (s *Set) Find(ctx context.Context, c Run, k keys.Keys, id string) (Found, error) {
	names := []string{k.Msg, k.Ready, k.Delayed, k.Locks, k.Done, k.Retry, k.Dead, k.Suspect, k.DeadInfo}
	reply, err := s.find.run(ctx, c, names, []any{k.LanePrefix, id})
	if err != nil {
		return Found{}, err
	}
	f, err := list("find", reply, 0)
	if err != nil || len(f) == 0 {
		return Found{}, err
	}
	if len(f) == 2 {
		return Found{Letter: text(f[0]), DoneUntil: number(f[1])}, nil
	}
	if len(f) < 7 {
		return Found{}, unexpected("find", reply)
	}
	return Found{
		Letter: text(f[0]), Member: text(f[1]), Score: text(f[2]), Envelope: text(f[3]),
		Record: ReadRecord(text(f[4])), Story: ReadStory(text(f[5])), Lock: text(f[6]),
	}, nil
}

// Depth counts what is where.
type Depth struct {
	Now                                        int64
	Envelopes, Ready, Delayed, Suspect, Dead   int64
	Running, KeysHeld, KeysAsleep, KeysSuspect int64
	KeysHalted, KeysDying, KeysPaused          int64
	Claims, OldestReady                        int64
	Paused                                     bool
	DedupeRecords                              int64
}

// Depth reads the sizes of a queue's indexes in one step.
func (s *Set) Depth(ctx context.Context, c Run, k keys.Keys) (Depth, error) {
	names := []string{k.Ready, k.Delayed, k.Locks, k.Msg, k.Suspect, k.Dead, k.Leases, k.Meta, k.Done}
	reply, err := s.depth.run(ctx, c, names, []any{k.ClaimPrefix, k.LanePrefix})
	if err != nil {
		return Depth{}, err
	}
	f, err := list("depth", reply, 17)
	if err != nil {
		return Depth{}, err
	}
	n := func(i int) int64 { return number(f[i]) }
	return Depth{
		Now: n(0), Envelopes: n(1), Ready: n(2), Delayed: n(3), Suspect: n(4), Dead: n(5), Running: n(6),
		KeysHeld: n(7), KeysAsleep: n(8), KeysSuspect: n(9), KeysHalted: n(10), KeysDying: n(11), KeysPaused: n(12),
		Claims: n(13), OldestReady: n(14), Paused: n(15) == 1, DedupeRecords: n(16),
	}, nil
}

// Verify walks everything. It answers how many messages it saw and what does not agree.
func (s *Set) Verify(ctx context.Context, c Run, k keys.Keys, most, problems int) (int64, []string, error) {
	names := []string{
		k.Ready, k.Delayed, k.Locks, k.Msg, k.Retry, k.Suspect, k.Dead, k.DeadInfo, k.Leases, k.Stats, k.Done,
		k.Reaped, k.Ops, k.OpsAt, k.Holds, k.Since, k.Cancels, k.Progress, k.Workers, k.WorkersAt,
	}
	reply, err := s.verify.run(ctx, c, names, []any{k.LanePrefix, k.ClaimPrefix, most, problems})
	if err != nil {
		return 0, nil, err
	}
	f, err := list("verify", reply, 1)
	if err != nil {
		return 0, nil, err
	}
	var out []string
	for _, p := range f[1:] {
		out = append(out, text(p))
	}
	return number(f[0]), out, nil
}

// KeyState is one ordering key that is held or waits.
type KeyState struct {
	Key, Lock, Head string
	Waiting         int64
	Due             int64 // microseconds; 0 unless the key sleeps
}

// Keys reads a page of the keys that are held or wait. The next cursor is 0 at the end.
func (s *Set) Keys(ctx context.Context, c Run, k keys.Keys, cursor uint64, count int) ([]KeyState, uint64, error) {
	reply, err := s.keys.run(ctx, c, []string{k.Locks, k.Delayed}, []any{k.LanePrefix, strconv.FormatUint(cursor, 10), count})
	if err != nil {
		return nil, 0, err
	}
	f, err := list("keys", reply, 1)
	if err != nil {
		return nil, 0, err
	}
	next, err := strconv.ParseUint(text(f[0]), 10, 64)
	if err != nil {
		return nil, 0, unexpected("keys", reply)
	}
	var out []KeyState
	for i := 1; i+4 < len(f); i += 5 {
		out = append(out, KeyState{
			Key: text(f[i]), Lock: text(f[i+1]), Waiting: number(f[i+2]), Head: text(f[i+3]), Due: number(f[i+4]),
		})
	}
	return out, next, nil
}
