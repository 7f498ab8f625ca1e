package idempotency

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync/atomic"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Outcome is what the middleware has done with a delivery. There are few, so it can be an attribute of a metric.
type Outcome string

// Outcomes.
const (
	Ran         Outcome = "ran"         // the handler ran, and its end is recorded
	Unrecorded  Outcome = "unrecorded"  // the handler ran, but its end could not be recorded
	Skipped     Outcome = "skipped"     // a run was done before; acked without another
	InProgress  Outcome = "in_progress" // another message holds the key; postponed
	Unavailable Outcome = "unavailable" // the store is out of reach; postponed
	Unkeyed     Outcome = "no_key"      // the message has no business key; the handler ran, or it is a dead letter
)

// hooks calls what the application gave, and survives its panics: each kind is logged once.
type hooks struct {
	outcomes  []func(context.Context, *zq.Delivery, Outcome, Record)
	duplicate func(context.Context, *zq.Delivery, Record) error
	store     func(error)
	logger    *slog.Logger

	outcomeSaid, storeSaid atomic.Bool // its panic was logged
}

// told reports an outcome.
func (h *hooks) told(ctx context.Context, d *zq.Delivery, o Outcome, r Record) {
	for _, tell := range h.outcomes {
		func() {
			defer h.contain("OnOutcome", &h.outcomeSaid)
			tell(ctx, d, o, r)
		}()
	}
}

// tellStore reports that the store is out of reach, or back.
func (h *hooks) tellStore(err error) {
	if h.store == nil {
		return
	}
	defer h.contain("OnStore", &h.storeSaid)
	h.store(err)
}

// contain is deferred; it ends a panic.
func (h *hooks) contain(name string, said *atomic.Bool) {
	if v := recover(); v != nil && !said.Swap(true) {
		h.logger.Error("idempotency: a hook panicked; said once", "hook", name, "panic", v)
	}
}

// asked lets the application look at a duplicate. Its panic is an error like any other.
func (h *hooks) asked(ctx context.Context, d *zq.Delivery, r Record) (err error) {
	if h.duplicate == nil {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = &zq.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return h.duplicate(ctx, d, r)
}
