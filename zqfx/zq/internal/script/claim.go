package script

import (
	"context"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq/internal/keys"
)

// Upkeep is what claim and reap do on the side: how much at most, and by which rules.
type Upkeep struct {
	Promote, Reap int    // entries and claims a call
	MaxLosses     int    // deaths alone before a message is a dead letter
	OnDeath       string // what becomes of a key whose message died: continue, halt or key
	DeadKeep      time.Duration
	DeadMax       int
	DoneMax       int
	Canary        string // label under which the caller has the partition for itself; "" for most
	Lease         time.Duration
}

// ClaimCall is one request for work.
type ClaimCall struct {
	CID                       string
	Entries, Messages, PerKey int
	Lease                     time.Duration
	Suspects                  bool // whether one suspect may be served, alone
	Upkeep                    Upkeep
}

// Taken is one message in a claim.
type Taken struct {
	Member, Score string
	Envelope      string
	HasEnvelope   bool // false for a plain member, and for a message whose envelope is gone
	Record        Record
}

// Claimed is the answer to a ClaimCall.
type Claimed struct {
	Status   string // empty, served, repeat, suspect, paused, limited, reserved or opening
	Fence    int64
	Now      int64 // server time in microseconds
	NextDue  int64 // when something may be due, in microseconds; 0 if nothing is known. Only without messages
	Shape    Shape
	Limits   int64 // version of the queue's limits
	Messages []Taken
}

// Claim takes messages into the processing set of call.CID. Sent again under the same id it gives the same.
func (s *Set) Claim(ctx context.Context, c Run, k keys.Keys, call ClaimCall) (Claimed, error) {
	names := []string{
		k.Ready, k.Locks, k.Delayed, k.Leases, k.Msg, k.Retry, k.Suspect, k.Wake, k.Meta, k.Stats, k.Dead, k.DeadInfo,
		k.Reaped, k.Claim(call.CID), k.Holds, k.Since, k.Cancels, k.Progress,
	}
	suspects := 0
	if call.Suspects {
		suspects = 1
	}
	u := call.Upkeep
	reply, err := s.claim.run(ctx, c, names, []any{
		call.CID, k.LanePrefix, k.ClaimPrefix, call.Entries, call.Messages, call.PerKey, call.Lease.Microseconds(),
		suspects, u.Promote, u.Reap, u.MaxLosses, u.OnDeath, u.DeadKeep.Microseconds(), u.DeadMax,
		u.Canary,
	})
	if err != nil {
		return Claimed{}, err
	}
	return readClaimed(reply)
}

func readClaimed(reply any) (Claimed, error) {
	f, err := list("claim", reply, 7)
	if err != nil {
		return Claimed{}, err
	}
	out := Claimed{Status: text(f[0]), Fence: number(f[1]), Now: number(f[2]), NextDue: number(f[3])}
	out.Shape, out.Limits = Shape{Epoch: number(f[4]), Partitions: int(number(f[5]))}, number(f[6])
	if len(f) < 11 {
		return out, nil
	}
	members, ok1 := f[7].([]any)
	scores, ok2 := f[8].([]any)
	envelopes, ok3 := f[9].([]any)
	records, ok4 := f[10].([]any)
	if !ok1 || !ok2 || !ok3 || !ok4 || len(scores) != len(members) || len(envelopes) != len(members) {
		return Claimed{}, unexpected("claim", reply)
	}
	out.Messages = make([]Taken, len(members))
	for i := range members {
		m := &out.Messages[i]
		m.Member, m.Score = text(members[i]), text(scores[i])
		m.Envelope, m.HasEnvelope = envelopes[i].(string)
		if i < len(records) {
			if raw, ok := records[i].(string); ok {
				m.Record = ReadRecord(raw)
			}
		}
	}
	return out, nil
}

// Beat is the answer to a heartbeat: the claims that are over, and the messages of the others that an operator has
// cancelled, by the fields of their members.
type Beat struct{ Lost, Cancelled []string }

// Worker is a process that works on the queue, as it describes itself.
type Worker struct{ ID, About string }

// Heartbeat extends the leases of claims, and notes that the worker is there unless its ID is empty.
func (s *Set) Heartbeat(ctx context.Context, c Run, k keys.Keys, lease time.Duration, w Worker, cids []string) (Beat, error) {
	args := make([]any, 0, 3+len(cids))
	args = append(args, lease.Microseconds(), w.ID, w.About)
	for _, cid := range cids {
		args = append(args, cid)
	}
	names := []string{k.Leases, k.Reaped, k.Stats, k.Cancels, k.Workers, k.WorkersAt}
	reply, err := s.heartbeat.run(ctx, c, names, args)
	if err != nil {
		return Beat{}, err
	}
	f, err := list("heartbeat", reply, 2)
	if err != nil {
		return Beat{}, err
	}
	var out Beat
	if out.Lost, err = texts("heartbeat", f[0]); err == nil {
		out.Cancelled, err = texts("heartbeat", f[1])
	}
	return out, err
}

// Reap gives back what expired claims held and carries over what is due; it says how many of each.
func (s *Set) Reap(ctx context.Context, c Run, k keys.Keys, u Upkeep) (reaped, promoted int, err error) {
	names := []string{
		k.Ready, k.Locks, k.Delayed, k.Leases, k.Msg, k.Retry, k.Suspect, k.Wake, k.Stats, k.Dead, k.DeadInfo,
		k.Reaped, k.Done, k.Ops, k.OpsAt, k.Holds, k.Since, k.Cancels, k.Progress, k.Meta,
	}
	reply, err := s.reap.run(ctx, c, names, []any{
		k.LanePrefix, k.ClaimPrefix, u.Reap, u.Promote, u.MaxLosses, u.OnDeath, u.DoneMax, u.Canary, u.Lease.Microseconds(),
	})
	if err != nil {
		return 0, 0, err
	}
	f, err := list("reap", reply, 2)
	if err != nil {
		return 0, 0, err
	}
	return int(number(f[0])), int(number(f[1])), nil
}
