// Package timeout bounds one run of a handler. It belongs inside retry, which then decides on what took too long as
// on any other error.
//
// # Promised
//
// The handler's context ends after the limit, with cause zq.ErrTimeout. If the handler then only passes that on,
// what comes out is a zq.ErrTimeout (errors.Is) with the limit in its text. The handler's own error beats it, and
// so does its success: what was done in the end is done.
//
// Where the context ends earlier for another reason, a deadline of the caller's, the consumer's MaxRun, shutdown or
// a lost lease, that reason stays its cause and the error stays as it is. Nothing outlives the run: no timer, no
// goroutine.
//
// # Not promised
//
// A handler that is deaf to its context is not stopped; no Go code can do that. Against such handlers the consumer
// has MaxRun and Grace, after which it takes the message away.
//
// See the example of [New].
package timeout
