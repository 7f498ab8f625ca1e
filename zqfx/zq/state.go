package zq

// State is where a message is in its life.
type State string

// States of a message, as receipts and the Inspector give them.
const (
	StateUnknown State = ""        // not in the queue, or forgotten
	StatePending State = "pending" // can be claimed, or waits behind others of its key
	StateDelayed State = "delayed" // not due yet
	StateRunning State = "running" // in a claim
	StateRetry   State = "retry"   // failed before, waits to run again
	StateDead    State = "dead"    // a dead letter
	StateDone    State = "done"    // acked, its id still remembered
)

// stateOf translates the scripts' letter.
func stateOf(letter string) State {
	switch letter {
	case "p":
		return StatePending
	case "d":
		return StateDelayed
	case "r":
		return StateRunning
	case "t":
		return StateRetry
	case "x":
		return StateDead
	case "o":
		return StateDone
	}
	return StateUnknown
}

// Receipt says what became of an enqueued message.
type Receipt struct {
	// ID is the message's id, made up if the producer gave none.
	ID string
	// Duplicate says that a message with this id was there already, and nothing was added.
	Duplicate bool
	// State is that of the message that was there; empty unless Duplicate.
	State State
	// Sequence is the enqueue sequence, unique and increasing per queue; 0 if Duplicate.
	Sequence int64
}

// Result is one message's part of a batch: a receipt, or why this message was not taken.
type Result struct {
	Receipt
	Err error
}
