package idempotency

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// State is where a business key is in its life.
type State string

// States of a business key.
const (
	StateNone    State = ""        // no record: never seen, cleared, or expired
	StateRunning State = "running" // a run holds it
	StateDone    State = "done"    // a run has ended well; nobody runs it again
	StateFailed  State = "failed"  // a run has failed; it may run again
)

// Name is a business key within its scope. Two names are the same if both parts are.
type Name struct {
	// Scope is what the key is unique in: the queue's name, or what the option Scope says.
	Scope string
	// Key is at most MaxKey bytes, of any value.
	Key string
}

// Owner is one run of one message.
type Owner struct {
	// Message names the message: its queue, id and enqueue sequence, so it is the same in every redelivery.
	Message string
	// Fence is the number of the claim, from 0 to 2^53−1; a redelivery has a higher one.
	Fence int64
}

// Record is what is known of a business key. The zero Record says that nothing is.
type Record struct {
	State State
	// Owner is the run that wrote the record.
	Owner Owner
	// Since is when the state began, by the server's clock; Age how long ago that was.
	Since time.Time
	Age   time.Duration
	// Expires is how long the record stays if nothing changes it, with an accuracy of a millisecond.
	Expires time.Duration
	// Held says of a failed run that the key waits for the same message (see Hold).
	Held bool
	// Result is what a run that is done has stored with SetResult.
	Result []byte
	// Error is what a failed run has returned, clipped.
	Error string
}

// Letters of the states, as the scripts write them.
const (
	letterRunning = "r"
	letterDone    = "d"
	letterFailed  = "f"
	letterHeld    = "h"
	letterClear   = "c"
)

// readRecord reads what the scripts write; lua/record.lua has the format.
func readRecord(raw string) (Record, error) {
	if raw == "" {
		return Record{}, nil
	}
	head, rest, _ := strings.Cut(raw, "\n")
	words := strings.Split(head, " ")
	if len(words) != 5 || words[0] != "1" {
		return Record{}, errForeign
	}
	since, err1 := strconv.ParseInt(words[2], 10, 64)
	fence, err2 := strconv.ParseInt(words[3], 10, 64)
	size, err3 := strconv.Atoi(words[4])
	if err1 != nil || err2 != nil || err3 != nil || size < 0 || size > len(rest) {
		return Record{}, errForeign
	}
	r := Record{Owner: Owner{Message: rest[:size], Fence: fence}, Since: time.UnixMicro(since)}
	switch payload := rest[size:]; words[1] {
	case letterRunning:
		r.State = StateRunning
	case letterDone:
		r.State, r.Result = StateDone, []byte(payload)
	case letterFailed, letterHeld:
		r.State, r.Error, r.Held = StateFailed, payload, words[1] == letterHeld
	default:
		return Record{}, errForeign
	}
	return r, nil
}

// wire is the run as the scripts store it.
func (o Owner) wire() string {
	return strconv.FormatInt(o.Fence, 10) + " " + strconv.Itoa(len(o.Message)) + "\n" + o.Message
}

// errForeign says that a key in Redis is not one of ours. Nobody but an operator can change that.
var errForeign = fmt.Errorf("idempotency: not a record that this library knows: %w", zq.ErrWrongType)

// ended is the record that an ending asks for, as far as is known without the server.
func ended(e *Ending) Record {
	return Record{
		State: e.State, Owner: e.Owner, Expires: e.Keep, Held: e.Held, Result: bytes.Clone(e.Result), Error: e.Error,
	}
}
