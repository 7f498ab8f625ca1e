package main

import (
	"log/slog"
	"time"

	"github.com/zqueue/zqueue/middleware"
	"github.com/zqueue/zqueue/middleware/deadletter"
	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/middleware/logging"
	"github.com/zqueue/zqueue/middleware/retry"
	"github.com/zqueue/zqueue/zqfx/zq"
)

const retryDelay = 50 * time.Millisecond // a real shop would wait longer

// chain is what stands around the handler: the standard plan, with this shop's wishes. Each layer stands where the
// plan wants it, whatever the order here. A chain is a value, so the books that its hooks write to are there before
// the application.
func chain(o options, b *books) middleware.Plan {
	layers := []middleware.Layer{
		// Failures are shown in the end; as warnings they would get in the way of the progress bar.
		middleware.Logging(logging.Level(zq.ActionRetry, slog.LevelInfo), logging.Level(zq.ActionDead, slog.LevelInfo)),
		middleware.DeadLetter(deadletter.OnDead(b.died)),
		// Any other error has the standard curve, from a second on.
		middleware.Retry(retry.On(retry.Is(errGateway), retry.After(retryDelay)), retry.OnRetry(b.trail.note)),
	}
	if o.redis != nil { // the embedded one ends with the program, and knows of no earlier run
		// An event that was booked is not booked again, if the program died before the queue had heard of it.
		layers = append(layers, middleware.Idempotency(idempotency.FromID(), idempotency.OnOutcome(b.checked)))
	}
	return middleware.Standard(layers...)
}
