// Package metrics counts and measures with OpenTelemetry what producers, consumers and queues do. Names, units and
// attributes follow the messaging conventions and stand in docs/telemetry.md.
//
// # Promised
//
// What is counted is what the core has decided: outcomes, waits and lost leases come from a consumer's Observer,
// not from what a handler seems to have asked for. Times between a message's being due and its run are by the
// server's clock alone.
//
// No attribute has an id, a key, a header or an error's text. Queues, outcomes and error classes are few by nature;
// words that come from outside, such as the reasons of dead letters, are bounded: the fiftieth and first is "other".
//
// A scrape never waits for Redis longer than Watch allows, whatever Redis or the client does. Depths are read once
// for all scrapes of a few seconds, one read at a time. While they cannot be read there is no value once the last
// one is too old, and a counter says so. A source that panics is a failed read. An idle consumer counts nothing.
//
// All of it is safe for concurrent use.
//
// # Not promised
//
// Middleware, Send and Observer are three parts of one thing: without the Observer nothing that a consumer does is
// counted but the runs in flight.
//
// Depth and age are the queue's, not the process's: every process that watches a queue reports the same number, so
// take the maximum over processes, never the sum. Messages that become dead letters without a run, because their
// workers died or their key did, show in the depth of dead and not in the counter of this process.
//
// See the example of [New].
package metrics
