// Package keys names the Redis keys of a queue. It is the one place that builds them.
//
// All keys of a queue partition share one hash tag, "zq:{orders}:…" or "zq:{orders/3}:…", so that every
// script stays in one Cluster slot. Redis takes the first pair of braces as the tag, and queue names have
// none, so what follows may hold any byte.
package keys

import (
	"encoding/hex"
	"strconv"
)

// Keys holds the names of one queue partition. The zero value is useless; call New.
type Keys struct {
	Ready, Locks, Delayed, Leases, Msg, Retry, Suspect, Dead, DeadInfo string
	Done, Reaped, Ops, OpsAt, Wake, Meta, Stats                        string
	Holds, Since, Cancels, Progress, Workers, WorkersAt                string

	// LanePrefix, ClaimPrefix and EffectPrefix are completed by an ordering key, a claim's id and the name
	// of a user's effect key.
	LanePrefix, ClaimPrefix, EffectPrefix string
	// HistoryPrefix is completed by the number of an hour since 1970.
	HistoryPrefix string
}

// New names the keys of partition p of a queue. Partition 0 has no suffix, so that a queue of one partition
// reads plainly and keeps its keys when it grows.
func New(queue string, partition int) Keys { return named(queue, partition, "") }

func named(queue string, partition int, prefix string) Keys {
	tag := queue
	if partition > 0 {
		tag += "/" + strconv.Itoa(partition)
	}
	p := "zq:{" + tag + "}:" + prefix
	return Keys{
		Ready: p + "ready", Locks: p + "locks", Delayed: p + "delayed", Leases: p + "leases",
		Msg: p + "msg", Retry: p + "retry", Suspect: p + "suspect", Dead: p + "dead", DeadInfo: p + "deadinfo",
		Done: p + "done", Reaped: p + "reaped", Ops: p + "ops", OpsAt: p + "opsat", Wake: p + "wake",
		Meta: p + "meta", Stats: p + "stats", Holds: p + "holds", Since: p + "since", Cancels: p + "cancels",
		Progress: p + "progress", Workers: p + "workers", WorkersAt: p + "workersat",
		LanePrefix: p + "lane:", ClaimPrefix: p + "claim:", EffectPrefix: p + "x:",
		HistoryPrefix: p + "hist:",
	}
}

// Lane is the name of an ordering key's lane.
func (k Keys) Lane(key string) string { return k.LanePrefix + key }

// Claim is the name of a claim's processing set.
func (k Keys) Claim(cid string) string { return k.ClaimPrefix + cid }

// Rouse is the name of the marker that ends one consumer's wait, and nobody else's.
func (k Keys) Rouse(id string) string { return k.Wake + ":" + id }

// History is the name of an hour's history, by its number since 1970.
func (k Keys) History(hour int64) string { return k.HistoryPrefix + strconv.FormatInt(hour, 10) }

// Effect is the name of a user's key in the queue's own namespace.
func (k Keys) Effect(name string) string { return k.EffectPrefix + name }

// ClaimID makes a claim's id of 16 random bytes: hex, so that it can never be mistaken for another owner of a
// key.
func ClaimID(random [16]byte) string { return hex.EncodeToString(random[:]) }

// Scratch names keys for a rehearsal beside a queue's own: same hash tag, names that nobody else uses.
func Scratch(queue string, partition int, unique string) Keys {
	return named(queue, partition, "check:"+unique+":")
}

// All lists the keys that have a fixed name, and the ones a rehearsal makes.
func (k Keys) All() []string {
	return []string{
		k.Ready, k.Locks, k.Delayed, k.Leases, k.Msg, k.Retry, k.Suspect, k.Dead, k.DeadInfo, k.Done, k.Reaped, k.Ops,
		k.OpsAt, k.Wake, k.Meta, k.Stats, k.Holds, k.Since, k.Cancels, k.Progress, k.Workers, k.WorkersAt, k.Lane("k"), k.Claim("rehearsal"), k.Effect("s"),
		k.Effect("n"), k.Effect("h"), k.Effect("t"), k.Effect("z"), k.Effect("l"), k.Effect("d"),
	}
}
