package semconv

// Metrics of the conventions.
const (
	SentMessages      = "messaging.client.sent.messages"
	ConsumedMessages  = "messaging.client.consumed.messages"
	OperationDuration = "messaging.client.operation.duration"
	ProcessDuration   = "messaging.process.duration"
)

// Metrics of the project's own.
const (
	MessageWait         = "messaging.zq.message.wait"
	ScheduleLag         = "messaging.zq.schedule.lag"
	Outcomes            = "messaging.zq.outcomes"
	Retries             = "messaging.zq.retries"
	DeadLetters         = "messaging.zq.dead_letters"
	IdempotencyOutcomes = "messaging.zq.idempotency.outcomes"
	LeasesLost          = "messaging.zq.leases.lost"
	CallsFailed         = "messaging.zq.calls.failed"
	ConsumerInflight    = "messaging.zq.consumer.inflight"
	QueueDepth          = "messaging.zq.queue.depth"
	QueueKeys           = "messaging.zq.queue.keys"
	QueueOldestReady    = "messaging.zq.queue.oldest_ready.age"
	QueuePaused         = "messaging.zq.queue.paused"
	QueueReadFailed     = "messaging.zq.queue.read.failed"
)

// Buckets are the boundaries of all histograms, in seconds: from 5 ms to 15 min, because jobs take longer than
// requests. The SDK's own are made for milliseconds and would put every job into one bucket.
func Buckets() []float64 {
	return []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900}
}
