// Package middleware puts the chain around a handler together. A Plan says which layers there are and in what
// order; Build makes it one zq.Chain, with what producers and the consumer need beside it.
//
// # The standard order
//
// Outermost first, and why:
//
//	recovery     a panic of the chain itself becomes an error of the message
//	tracing      the span must see what becomes of the message
//	metrics      counts what becomes of it; inside tracing, so that an exemplar finds the span
//	logging      says what becomes of it; inside tracing, so that a line has the span's ids
//	deadletter   outside retry, else what retry gives up on never reaches it
//	retry        decides on all errors from within
//	timeout      what ran out of time is an error like any other
//	sequence     a number is confirmed by what happens within, a skipped duplicate too
//	idempotency  inside retry: a skip is a success; outside ratelimit: a skip costs nothing of the rate
//	ratelimit    counts what really runs
//	(yours)
//	recovery     a panic of the handler becomes an error that all of the above see
//
// Recovery, tracing, metrics, logging, deadletter and retry are there unless left out. The others have
// parameters that only you know, so they are there when given.
//
// # Promised
//
// A plan whose order breaks one of the rules above is refused when it is built, with one line for each rule
// that says why. All faults are listed at once. Nothing is dialled or started by building, but for the
// gauges of metrics, which Stack.Close ends.
//
// # Not promised
//
// A layer of your own (User) is not looked into: one that swallows errors hides them from the layers outside
// it, wherever it stands.
//
// See the examples.
package middleware
