package zq

import "time"

// Limits of what a queue takes. Each is checked before anything is sent; a value outside gives an
// [*InvalidError] that names the field, the value and the range.
const (
	MaxQueueName   = 128                       // bytes, of [A-Za-z0-9._-]
	MaxID          = 256                       // bytes, valid UTF-8 without control characters
	MaxKey         = 256                       // bytes, any but NUL; also of Route
	MaxKind        = 128                       // bytes, valid UTF-8 without control characters
	MaxHeaders     = 64                        // headers a message
	MaxHeaderBytes = 16 << 10                  // bytes, names and values together
	DefaultMaxBody = 1 << 20                   // bytes, unless WithMaxBody says otherwise
	HardMaxBody    = 64 << 20                  // bytes, the most that WithMaxBody takes
	MaxBatch       = 10_000                    // messages in one EnqueueBatch, and follow-ups of one ack
	MaxScore       = int64(1)<<53 - 1          // scores are exact in [-MaxScore, MaxScore]
	MaxDelay       = 10 * 365 * 24 * time.Hour // about ten years
	MaxAttached    = 8 << 20                   // bytes of follow-ups and effects of one ack, or of one checkpoint
	MinLease       = 100 * time.Millisecond    // of a consumer's claims
	MaxLease       = 24 * time.Hour            // of a consumer's claims
	maxErrorText   = 4 << 10                   // bytes of a dead letter's error
	maxRetryText   = 512                       // bytes of the error kept with a message that is retried
)
