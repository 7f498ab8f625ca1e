// Package logging writes one line for each run of a handler, to log/slog, when the run has ended.
//
// # Promised
//
// A line has these fields, those without a value left out:
//
//	queue, kind, message_id, attempt, max_attempts
//	duration      how long the run took
//	outcome       ack, retry, postpone, dead, release or drop, as zq.Action
//	delay         until the next run, where that was decided within the chain
//	reason        a dead letter's
//	error         the error's text, at most MaxError bytes
//	stack         of a *zq.PanicError, at most MaxStack bytes
//	key           the ordering key, only with Key
//
// Levels are Info for ack and release, Debug for postpone, Warn for retry and drop, Error for dead; Level changes
// them. Bodies and header values are never written. A member put in by plain ZADD is its own id and body, so its
// message_id is left out too, unless PlainIDs says otherwise.
//
// Lines go out with the run's context: a handler that looks there finds the span. Correlated makes any handler do
// so. From gives the handler a logger whose lines have the fields that tell the message.
//
// Nothing that is logged can fail the run: not an error whose Error method panics, nor a slog handler that does.
//
// # Not promised
//
// The text of an error, and the value of a panic, are the handler's own: what it writes there is logged. A line says
// what the core does with the run, not that Redis has recorded it. Without retry in the chain the delay is the
// core's, and not known here. Layers outside this one may change what is returned.
//
// See the example of [New].
package logging
