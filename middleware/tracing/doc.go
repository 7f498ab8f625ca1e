// Package tracing follows a message with OpenTelemetry spans: from the caller that sends it, over each run of its
// handler, to the follow-ups that a run sends. Names and attributes are those of the messaging conventions and
// stand in docs/telemetry.md.
//
// # Promised
//
// Every run of a handler is one span. By default it is the root of a trace of its own and links to where the
// message was made, because a queue may hold it for days and a job that sends itself again would make one trace
// without an end; AsChild makes it the sender's child instead. A later run, also after a replay from the dead
// letters, links to the run before it as well. The span ends with the run whatever happens in it, and is active in
// the run's context alone, so that no later job joins its trace. Its status is Error if the handler has failed or
// its lease was lost. Put off, skipped and stopped by a shutdown is none of these.
//
// A message's headers are copied before the context goes into them, and are left alone where it does not fit the
// queue's limits. Baggage beyond a limit is dropped by whole members, for Redis keeps it as long as the message.
// Headers of others may hold anything: what is no trace context is no link. Claims that found nothing, and calls to
// Redis that fail, make no spans.
//
// All of it is safe for concurrent use. Without a provider that records, little is done.
//
// # Not promised
//
// No span has a body, a header's value or a claim's id in it. The text of a handler's error is the description of
// the span's status, though, so it is what the handler makes it. A message put into the queue by ZADD is its own id
// and body; its span has neither.
//
// A run whose worker dies leaves no span behind, and the run after it links to none. What the span says about a
// retry is what the middleware inside have decided; the core may still find that a lease was lost, or that an
// effect does not hold, when it records the outcome. Metrics count what the core has decided.
//
// See the example of [New].
package tracing
