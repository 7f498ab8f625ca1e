// Package zq is a job queue on Redis sorted sets whose order holds: per key, through retries, crashes and
// dead letters. It needs Redis 7.0 or newer and nothing else; package zqfx wires it into fx applications.
//
// # Promised
//
// An accepted message is at every moment in exactly one place, and is run until it is acked, dead-lettered or
// removed, whatever crashes. An acked message never runs again. For one ordering key the handler of the next
// message starts only after the outcome of the one before is decided; retry, crash and shutdown keep its
// place. At most one claim holds a key, and one whose lease ran out can change nothing any more. Every write
// can be sent twice with the outcome of once, so a lost reply loses and doubles nothing.
//
// # Not promised
//
// A handler may run more than once: after a crash, the messages whose outcome was decided but not recorded
// run again, from the first of them and in order. Redis replicates asynchronously, so a failover may lose
// what was confirmed last, unless the producer waits for replicas (MinReplicas). Messages without a key have
// no completion order.
//
// # Use
//
// Declare a Kind for each payload, send with a Producer, work with a Consumer. See the examples.
package zq
