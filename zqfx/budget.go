package zqfx

import (
	"context"
	"time"
)

// Shares of a shutdown.
const (
	wordsShare = 4 // a quarter for the last words with Redis, and wordsMost at most
	wordsMost  = 2 * time.Second
	graceShare = 4 // as much for handlers whose context has ended, and graceMost at most
	graceMost  = 5 * time.Second
)

// budget is how long a drain may take: the own timeout, and no more than fx's deadline leaves after the reserve.
// Without a deadline, as with app.Stop(context.Background()), the own timeout is the only bound there is.
func budget(ctx context.Context, c Config) time.Duration {
	own := c.shutdownTimeout()
	deadline, ok := ctx.Deadline()
	if !ok {
		return own
	}
	left := time.Until(deadline)
	return max(0, min(own, left-reserve(left, c.ShutdownReserve)))
}

// reserve is what is left to the hooks of others: fx runs none of them once the deadline has passed.
func reserve(left, asked time.Duration) time.Duration {
	half := left / 2
	if asked > 0 {
		return min(asked, half)
	}
	return max(left/5, min(time.Second, half))
}

// lastWords is the end of a drain in which no handler is waited for any more, but outcomes are recorded.
func lastWords(drain time.Duration) time.Duration { return min(wordsMost, drain/wordsShare) }

// fitShutdown gives grace and drain time the default for which a handler that heeds its context is not cut off.
func (q *queuePlan) fitShutdown(c Config) {
	whole := c.shutdownTimeout()
	if q.settings.Grace == 0 {
		q.settings.Grace = max(time.Millisecond, min(graceMost, whole/graceShare))
	}
	if q.settings.DrainTime == 0 {
		q.settings.DrainTime = max(time.Millisecond, whole-lastWords(whole)-q.settings.Grace)
	}
}

// cutShort tells whether the shutdown may end before the queue's handlers had their time.
func (q *queuePlan) cutShort(c Config) bool {
	whole := c.shutdownTimeout()
	return q.settings.DrainTime+q.settings.Grace+lastWords(whole) > whole
}
