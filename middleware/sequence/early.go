package sequence

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/effect"
)

// early decides on a message whose predecessor is not confirmed. What it waits for, and since when, is stored
// before it steps aside: the predecessor's ack wakes it by that, and a crash does not start its time anew.
func (g *gate) early(ctx context.Context, d *zq.Delivery, next zq.Handler, n int64, s *state) error {
	now := d.ClaimedAt
	w := waiting{stage: stageWait, since: now.UnixMicro(), at: now.UnixMicro()}
	if s.own != nil {
		w = *s.own
		w.ids = slices.Clone(w.ids)
	}
	if !slices.Contains(w.ids, d.ID) && len(w.ids) < maxIDs {
		w.ids = append(w.ids, d.ID)
	}
	if now.Before(w.due(g.cfg)) {
		return g.aside(ctx, d, n, s, &w, Waits)
	}
	low, found, err := g.reads.lowest(ctx, d.Key, s.confirmed, n)
	switch {
	case err != nil:
		return g.unanswered(ctx, d, n, err)
	case found && low == w.low && s.confirmed == w.base:
		// It has had a whole limit more and is no farther: its messages were removed from the queue.
		return g.forget(ctx, d, n, s, &w, low)
	case found:
		// The gap is before a lower number, if there is one. That number's time is not over, or just now is.
		w.stage, w.at, w.low, w.base = stageLow, now.UnixMicro(), low, s.confirmed
		return g.aside(ctx, d, n, s, &w, Waits)
	case w.stage != stageCall:
		w.stage, w.at = stageCall, now.UnixMicro()
		return g.aside(ctx, d, n, s, &w, Overdue)
	}
	return g.overdue(ctx, d, next, n, s, &w)
}

// aside stores what has changed and lets the message step aside until its stage is over.
func (g *gate) aside(ctx context.Context, d *zq.Delivery, n int64, s *state, w *waiting, o Outcome) error {
	if s.own == nil || s.own.String() != w.String() {
		if err := d.Checkpoint(ctx, g.store(d.Key, n, w)...); err != nil {
			return g.unanswered(ctx, d, n, err)
		}
	}
	s.own = w
	g.tell(ctx, d, report(o, d, n, s))
	return zq.StepAside(w.due(g.cfg).Sub(d.ClaimedAt))
}

// forget drops a lower number that waits in vain, and lets the message be looked at again at once.
func (g *gate) forget(ctx context.Context, d *zq.Delivery, n int64, s *state, w *waiting, low int64) error {
	w.low, w.base = 0, 0
	list := append(g.store(d.Key, n, w),
		effect.HDel(hashPrefix+d.Key, waitField(low)), effect.ZRem(lowestPrefix+d.Key, itoa(low)))
	if err := d.Checkpoint(ctx, list...); err != nil {
		return g.unanswered(ctx, d, n, err)
	}
	s.own = w
	g.tell(ctx, d, report(Waits, d, n, s))
	return zq.StepAside(time.Millisecond)
}

// store writes who waits with a number.
func (g *gate) store(key string, n int64, w *waiting) []effect.Effect {
	hash, lowest := hashPrefix+key, lowestPrefix+key
	list := []effect.Effect{effect.HSet(hash, waitField(n), w.String()), effect.ZAdd(lowest, float64(n), itoa(n))}
	return append(list, g.expire(hash, lowest)...)
}

// overdue carries the policy out: the gap has outlasted its limit, and nothing came in the last moment.
func (g *gate) overdue(ctx context.Context, d *zq.Delivery, next zq.Handler, n int64, s *state, w *waiting) error {
	if g.cfg.policy == GapSkip {
		g.tell(ctx, d, report(GapSkipped, d, n, s))
		return g.run(ctx, d, next, n, s, &Range{From: s.confirmed + 1, To: n - 1})
	}
	if err := d.Checkpoint(ctx, g.leave(d, n, w)...); err != nil {
		return g.unanswered(ctx, d, n, err)
	}
	r := report(GapDied, d, n, s)
	g.tell(ctx, d, r)
	return zq.Dead(ReasonGap, fmt.Errorf("number %d waited since %s for numbers from %d on",
		n, r.Since.UTC().Format(time.RFC3339), r.From))
}

// leave takes one message out of those that wait with a number: if it is replayed, its time begins anew.
func (g *gate) leave(d *zq.Delivery, n int64, w *waiting) []effect.Effect {
	w.ids = slices.DeleteFunc(w.ids, func(id string) bool { return id == d.ID })
	if len(w.ids) > 0 {
		return g.store(d.Key, n, w)
	}
	return []effect.Effect{effect.HDel(hashPrefix+d.Key, waitField(n)), effect.ZRem(lowestPrefix+d.Key, itoa(n))}
}
