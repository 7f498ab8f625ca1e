package idempotency

import (
	"context"
	"time"
)

// Store keeps the states of business keys. It must be safe for concurrent use. Every call may be repeated, after a
// lost reply too, with the outcome of once. NewRedisStore makes the one that this package brings.
//
// Begin and Finish take up to MaxBatch entries and answer each in its place; they check and change one entry in one
// atomic step, those of one call one after the other.
type Store interface {
	// Begin marks keys as running. It grants a key that has no record, one whose run has failed and is not held for
	// another message, and one whose record is of the same message with no higher fence, unless that is done. A
	// grant that is repeated extends the mark. The answer has the record that was found.
	Begin(ctx context.Context, claims []Claim) []Answer
	// Finish records how runs have ended. It grants that to the owner of a record, and to anybody where there is
	// none; a record that is done stays as it is. The answer has the record that refused it.
	Finish(ctx context.Context, endings []Ending) []Answer
	// Look reads one record; its State is StateNone if there is none.
	Look(ctx context.Context, name Name) (Record, error)
	// Forget drops a record, so that the next message with that key runs. The renewal of a run that is under way
	// brings its mark back.
	Forget(ctx context.Context, name Name) error
}

// MaxBatch is the most entries that one call of Begin or Finish has.
const MaxBatch = 500

// Claim asks to run under a business key.
type Claim struct {
	Name  Name
	Owner Owner
	// For is how long the mark lasts unless it is renewed, in whole milliseconds, rounded up: 1 ms to MaxTTL.
	For time.Duration
}

// Ending says how a run has ended.
type Ending struct {
	Name  Name
	Owner Owner
	// State is StateDone, StateFailed, or StateNone, which clears the record.
	State State
	// Keep is how long the record stays, in whole milliseconds, rounded up: 1 ms to MaxTTL. Not for StateNone.
	Keep time.Duration
	// Held keeps a failed run's key for its own message.
	Held bool
	// Result goes with StateDone, at most MaxResult bytes; Error with StateFailed.
	Result []byte
	Error  string
}

// Answer is the store's answer to one Claim or Ending.
type Answer struct {
	// Granted says that the claim holds the key now, or that the ending is recorded.
	Granted bool
	// Record is the one that was found; see Begin and Finish.
	Record Record
	// Err says that there is no answer: the store is out of reach, the entry invalid (zq.ErrInvalid), or its key
	// holds something else (zq.ErrWrongType).
	Err error
}

// weight is what an ending adds to a batch, in bytes.
func (e Ending) weight() int { return len(e.Result) + len(e.Error) }

// weight is what a claim adds to a batch, in bytes.
func (c Claim) weight() int { return len(c.Name.Key) + len(c.Owner.Message) }
