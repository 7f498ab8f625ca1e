package zqtest

import (
	"encoding/json"
	"strings"
	"time"
)

// Op says what happened in an [Event].
type Op string

// The operations of a history. Record each one at the moment that its comment
// names; the checks rest on it.
const (
	// Enqueued: the producer had its receipt. Key, Score and Seq count.
	Enqueued Op = "enqueued"
	// Claimed: a consumer took the message, not yet run. It is needed only where
	// lower scores are enqueued while others run: a message that came after the
	// claim could not go first.
	Claimed Op = "claimed"
	// Started: the first thing the handler does.
	Started Op = "started"
	// Succeeded: the last thing the handler does before it returns nil. The
	// outcome is decided, and not known to be recorded.
	Succeeded Op = "succeeded"
	// Failed: the last thing before it returns an error that is retried.
	Failed Op = "failed"
	// Postponed: the same for a return that charges no attempt.
	Postponed Op = "postponed"
	// Acked: the server is known to have recorded the success.
	Acked Op = "acked"
	// Dead: it was decided that the message goes to the dead letters. Name the
	// worker that decided so, or none if it was an operator.
	Dead Op = "dead"
	// Skipped: an operator or a policy let later messages of the key pass. The
	// message may run at any time from then on.
	Skipped Op = "skipped"
	// Cancelled: the message was taken out and will not run.
	Cancelled Op = "cancelled"
	// Replayed: a dead message was put back, as if enqueued now at its old place.
	Replayed Op = "replayed"
	// Lost: a worker was killed, or lost its lease. With an ID its run of that
	// message ended without an outcome, without one all its runs did.
	Lost Op = "lost"
)

// Event is one line of a history. An Op and an ID are needed (for Lost: a
// Worker); what no check uses may be left out.
type Event struct {
	Op  Op     `json:"op"`
	ID  string `json:"id,omitempty"`
	Key string `json:"key,omitempty"` // ordering key, on Enqueued; without one order is not checked

	// Messages of a key run by (Score, Seq). Seq is the order of enqueueing
	// within the key. Leave Score 0 throughout where no scores are given.
	Score float64 `json:"score,omitempty"`
	Seq   int64   `json:"seq,omitempty"`

	Attempt int       `json:"attempt,omitempty"`
	Worker  string    `json:"worker,omitempty"` // a name per consumer, new after each restart
	At      time.Time `json:"at"`               // filled in by Add if zero
}

// linePrefix tells events from the other lines of a child.
const linePrefix = "zqtest.event "

// Line is the event as one line of text, for a [Child] to print and
// [Recorder.AddLines] to read. A zero At becomes the present. Ids and keys
// must be valid UTF-8.
func (e Event) Line() string {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	b, err := json.Marshal(e)
	if err != nil {
		return linePrefix + err.Error() // a NaN score; AddLines counts it as foreign
	}
	return linePrefix + string(b)
}

// parseEvent reads a Line; a line torn by a kill is not one.
func parseEvent(line string) (Event, bool) {
	var e Event
	body, is := strings.CutPrefix(line, linePrefix)
	if !is || json.Unmarshal([]byte(body), &e) != nil {
		return Event{}, false
	}
	return e, e.Op != ""
}
