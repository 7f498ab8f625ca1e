// Package ratelimit keeps a queue, or each key of it, to a rate of starts. A message that comes too fast is postponed,
// uncharged, until its slot: nothing sleeps in a handler's place.
//
// # Promised
//
// In any stretch of time t, at most burst + limit·t messages get a slot. A message that waits owns its slot: it pays
// once, comes back when the slot is due and runs, so N messages need about (N-burst)/limit, and none starves. Slots
// go out in the order in which messages ask, which is the queue's order. A message with an ordering key keeps its
// place: its key waits with it.
//
// A retry is a start of its own and pays again. An attempt is never charged for waiting.
//
// [Local] limits one process, [Shared] all that share a Redis, by that server's clock. Both keep a bounded number of
// slots, and forget names that nobody asks for (see Line and MaxNames).
//
// # When the limiter is out of reach
//
// Messages run (FailOpen, the default) or are postponed for 1 to 30 seconds, uncharged (FailClosed). Each change is
// logged once and told to OnLimiter; the return with how long it took and how many messages passed by the limiter.
// Meanwhile about one message a second still asks. A limiter that panics, or whose keys in Redis hold something else, is
// out of reach as well.
//
// # Not promised
//
// A slot is the start of the middleware's own run. A message that comes back late uses it all the same, within a
// second or the time that the burst takes to fill up, whichever is longer; so after a stall as many more may start at
// once. One that is later still pays again, and its old slot is lost, as is that of a message that is cancelled, or
// of a call to Redis whose reply was lost. That makes things slower, never faster. So does a layer inside that postpones
// the message after all: its slot is used.
//
// Where more messages wait than the line has slots (Line), those behind it are told to come back when it is about half
// worked off. They have no place until then, and messages that come just at that time may get in before them. The same
// goes for a wait beyond MaxWait: they then ask again within it, as often as it takes.
//
// A name that a LocalLimiter has forgotten for want of room (MaxNames) begins anew with a full burst.
//
// A message is postponed once, but it is claimed for that: a long line costs a claim and an outcome for each message,
// and a second one for those behind the line.
//
// See the examples of [New] and [Local].
package ratelimit
