package deadletter

import (
	"context"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Letter is what became known of a message that dies, for a hook.
type Letter struct {
	// Reason is a short word, the one that is stored.
	Reason string
	// Err is what came out of the chain, never nil.
	Err error
	// Attempts are the runs that failed, this one included; Losses those whose worker died; Replays how often it
	// came back from the dead letters before.
	Attempts, Losses, Replays int
	// Trace is what the run before this one left with Delivery.Leave.
	Trace string
	// To is the name of the queue that it was sent to, "" if none: then it is a dead letter of its own queue.
	To string
	// Kept says that it is a dead letter of its own queue, whether or not it was sent to another one.
	Kept bool
}

func letterOf(d *zq.Delivery, v verdict) Letter {
	return Letter{
		Reason: v.reason, Err: v.err, Attempts: d.Attempt - d.Losses, Losses: d.Losses, Replays: d.Replays,
		Trace: d.Trace, Kept: true,
	}
}

// tell calls the hook, which changes nothing, whatever it does.
func (k *keeper) tell(ctx context.Context, d *zq.Delivery, l Letter) {
	if k.onDead == nil {
		return
	}
	defer k.contain("OnDead")
	k.onDead(ctx, d, l)
}

// classify asks the application for the reason. What it says is cleaned as zq.Dead does; nothing, or a panic, leaves
// the reason as it was.
func (k *keeper) classify(v *verdict) {
	if k.classifier == nil {
		return
	}
	defer k.contain("Classify")
	if r := clean(k.classifier(v.err, v.reason)); r != "" {
		v.reason = r
	}
}

// clean is a reason as zq.Dead stores it.
func clean(reason string) string { return zq.Explain(zq.Dead(reason, nil)).Reason }

// contain is deferred; it ends a panic of the application's, and logs the first.
func (k *keeper) contain(hook string) {
	if v := recover(); v != nil && !k.panicked.Swap(true) {
		k.logger.Error("deadletter: a hook panicked; said once", "hook", hook, "panic", v)
	}
}
