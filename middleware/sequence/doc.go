// Package sequence is the gate for producers that number their messages: in each ordering key 1, 2, 3 and so on,
// none left out. A message runs when its predecessor is confirmed, in whatever order they arrive.
//
// # Promised
//
// The handler of number n+1 starts only after the run of number n ended well and its ack was recorded. That number
// n is confirmed is recorded in the same atomic step as its ack, or not at all.
//
// A message that is early steps aside: its attempt is not charged, and others of its key pass. Its predecessor's
// ack wakes it; nothing polls. It waits for Limit, and then a little more for what may be queued behind it (a tenth
// of Limit, a minute at most). If its predecessor is not confirmed by then, the gap is reported, and it becomes a
// dead letter (GapDead) or runs all the same (GapSkip). Where lower numbers wait as well, these come first. Time is
// the server's, and goes on while no consumer runs.
//
// A message whose number is confirmed is a duplicate: it is acked without running. One whose number was skipped is a
// dead letter when it comes after all, never dropped. So is one without a number or with one that is not valid.
//
// # Not promised
//
// A message that dies does not confirm its number. Its successors wait for Limit, and then the policy decides on
// each; replaying the dead letter closes the gap. Or halt the key meanwhile: zq.HaltKey.
//
// A consumer that lets the messages behind a failed one pass (zq.SkipKey) lets them wait here instead; a Limit that
// ends before the retries do makes a gap of a message that is still there. So does a message that is in the queue but
// so far behind others of its key that it does not run within the last minute.
//
// The middleware compares numbers, not messages: of two messages with one number the second is a duplicate, whatever
// it says.
//
// # In Redis
//
// The state of a key is the hash "seq:<key>" in the queue's namespace, and while messages wait the sorted set
// "seqw:<key>"; leave effects of those names alone. It is about 100 bytes, and some 80 for each number that waits. It
// is kept for Keep after its last change. A key whose state is gone begins at its first number again.
//
// Each message costs one read, which concurrent messages share, and its ack is waited for before the next of its key
// starts. One that is early costs a write more, and being claimed again. Of many early messages of one key each is
// woken by the one before, so they run at about the pace of one claim and one ack each.
//
// See the example of [New].
package sequence
