// Package deadletter looks after messages that will not run again: it names why, tells a hook, and can send them to
// another queue. [Requeue] brings dead letters back to work, as often as a cap allows.
//
// # Promised
//
// The middleware acts when the error that comes out of the chain below it ends the message: zq.Dead, a
// backoff.Permanent, or any failure of the last attempt (Delivery.Attempt has reached Delivery.MaxAttempts). It must
// stand outside of whatever decides about retries. A shutdown never makes a dead letter: what only passes on that its
// context ended is given back unchanged, and so is everything of a run whose lease is lost or that was cancelled.
//
// A message that is sent to another queue ([ToQueue]) keeps its key, kind, content type and headers, and its body byte
// for byte. It gets an id that is made of what it is, so that a repeat is a duplicate: after lost replies and crashes
// it is there once. Only then is the original acked, without the follow-ups and effects that its handler attached. If
// the queue cannot be reached, the message is postponed, uncharged. If the queue refuses it for good, it becomes a
// dead letter of its own queue. It is never lost.
//
// Whatever a hook, a classifier or an Error method does, a panic in it changes no outcome.
//
// # Not promised
//
// Not every dead letter passes here. The core makes some without running a handler: zq.ReasonLost, zq.ReasonKey,
// zq.ReasonEnvelope, zq.ReasonLane, and zq.ReasonAttempts for a handler that is deaf to its context or whose effects
// do not hold. They are always dead letters of their own queue, where Requeue finds them.
//
// The hook is called before the outcome is recorded: after a crash, or for a lease lost meanwhile, it is called again.
// While another queue is out of reach, a message that is postponed runs again before it dies again.
//
// A message that has left for another queue is no dead letter for its key: HaltKey and DeadLetterKey do nothing about
// it, unless [KeepToo] keeps both. The other queue keeps one key's messages in the order in which they died there.
//
// See the examples of [New] and [Requeue].
package deadletter
