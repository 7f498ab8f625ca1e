// Package idempotency runs a handler once for a business key, such as an order number, however many messages carry
// that key. The state of each key is a record in Redis: running, then done or failed.
//
// # Promised
//
// While one message runs under a key, another with that key is postponed, without charging an attempt. If it has an
// ordering key, that key waits with it. Once a run has ended well, every later message with the key is acked without
// running, for as long as the record is kept (DoneTTL); it can look at a result that the run has stored.
//
// A crash loses nothing. The mark of a dead run goes to the redelivery of the same message at once, and to other
// messages when it expires (RunningTTL). A run that takes longer than that keeps its mark: it is renewed every third
// of RunningTTL. A run that was taken over cannot end its successor's mark, because each claim of a message has a
// higher fence, and the store refuses a lower one.
//
// A failed run frees the key for the retry of its own message at once, and by default for other messages too
// (OnFailure). A run that was postponed, cancelled or cut off by a shutdown leaves nothing behind.
//
// Redis alone says what time it is. Every call to it can be repeated after a lost reply with the outcome of once.
// Concurrent deliveries share round trips. Every key in Redis expires.
//
// # When the store is out of reach
//
// Before the handler has started, the message is postponed for 1 to 30 seconds, uncharged, and OnStore is told once.
// After the handler has ended well, recording that is tried a few times, for 4 seconds at most. If it fails, the
// message is acked all the same: its work is done, and to run it again would double it for certain. What can double
// then is a further message with the same key, once, after RunningTTL. OnOutcome tells of it as [Unrecorded].
//
// # Not promised
//
// This is not exactly-once. A process that dies between the end of its handler and the record of it runs that
// message again. So does one whose mark could not be renewed for RunningTTL: another message with the key may run
// beside it; its context ends with [ErrTaken] when that is found out. A handler whose state lives in Redis can have
// more, with zq's Delivery.Effect.
//
// Redis must not evict these keys (maxmemory-policy noeviction): a key that is gone was never seen. A failover can
// lose what was written last. Messages that wait for a running one are not woken by its end: they look again after
// about as long as it has run by then (BusyDelay).
//
// # In Redis
//
// A record is a string at zq:{idem/<store>/<shard>}:<scope>:<key>, where the shard is a hash of scope and key. A
// batched call is one pipeline with one script call for each shard that it touches, so in a Redis Cluster the keys
// spread over as many slots as there are shards. The scope is the queue, or what [Scope] says.
//
// See the example of [New].
package idempotency
