package semconv

// Attributes of the conventions.
const (
	SystemKey            = "messaging.system"
	OperationTypeKey     = "messaging.operation.type"
	OperationNameKey     = "messaging.operation.name"
	DestinationNameKey   = "messaging.destination.name"
	MessageIDKey         = "messaging.message.id"
	MessageBodySizeKey   = "messaging.message.body.size"
	BatchMessageCountKey = "messaging.batch.message_count"
	ErrorTypeKey         = "error.type"
)

// Attributes of the project's own, on spans, events and links.
const (
	KindKey               = "messaging.zq.kind"
	OrderingKeyKey        = "messaging.zq.key"
	DelayKey              = "messaging.zq.delay_ms"
	EnqueueResultKey      = "messaging.zq.enqueue.result"
	ExistingIDKey         = "messaging.zq.existing_id"
	BatchFailedKey        = "messaging.zq.batch.failed"
	BatchDuplicatesKey    = "messaging.zq.batch.duplicates"
	PlainKey              = "messaging.zq.plain"
	AttemptKey            = "messaging.zq.attempt"
	MaxAttemptsKey        = "messaging.zq.max_attempts"
	LossesKey             = "messaging.zq.losses"
	ReplaysKey            = "messaging.zq.replays"
	QueueWaitKey          = "messaging.zq.queue_wait_ms"
	RetryDelayKey         = "messaging.zq.retry.delay_ms"
	RetryAtKey            = "messaging.zq.retry.at"
	DeadReasonKey         = "messaging.zq.dlq.reason"
	IdempotencyOutcomeKey = "messaging.zq.idempotency.outcome"
	OriginalMessageIDKey  = "messaging.zq.original_message_id"
	LinkKey               = "messaging.zq.link"
)

// Attributes of the project's own, on metrics alone.
const (
	OutcomeKey = "messaging.zq.outcome"
	CallKey    = "messaging.zq.call"
	StateKey   = "messaging.zq.state"
)

// Operations, as messaging.operation.type and messaging.operation.name. What the conventions call receive is a
// claim here.
const (
	Create  = "create"
	Send    = "send"
	Receive = "receive"
	Claim   = "claim"
	Process = "process"
	Settle  = "settle"
)

// Values of attributes.
const (
	ResultDuplicate = "duplicate" // of EnqueueResultKey
	LinkCreation    = "creation"  // of LinkKey: where the message was made
	LinkPrevious    = "previous"  // of LinkKey: the run before this one
	Other           = "other"     // of DeadReasonKey, CallKey and IdempotencyOutcomeKey on metrics: one too many
)
