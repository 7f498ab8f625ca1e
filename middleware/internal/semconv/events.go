package semconv

// Events on the span of a run.
const (
	EventRetry      = "messaging.zq.retry"
	EventPostponed  = "messaging.zq.postponed"
	EventDeadLetter = "messaging.zq.dead_letter"
	EventLeaseLost  = "messaging.zq.lease_lost"
	EventReleased   = "messaging.zq.released"
)
