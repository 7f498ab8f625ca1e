// Package retry decides when a failed message runs again, and when it has failed for good. It decides, the core
// acts: nothing sleeps, and a handler's slot is free at once.
//
// # Promised
//
// A handler's error becomes one whose zq.Explain says what to do. The first of these that fits decides:
//
//   - zq.Dead is passed on.
//   - What only passes on that the consumer shuts down is passed on as it is, and so is everything after the lease
//     was lost: the core gives such messages back or drops them. They are never charged and never dead letters.
//   - backoff.Permanent of github.com/cenkalti/backoff/v4, anywhere in the error's chain, means zq.Dead with
//     [ReasonPermanent].
//   - zq.Postpone and zq.StepAside are passed on.
//   - zq.RetryAfter is passed on, within the limits below.
//   - The first rule ([On]) that matches.
//   - The curve ([Backoff]).
//
// Every retry keeps to two limits. A run whose number has reached MaxAttempts makes a dead letter with
// zq.ReasonAttempts. With [MaxAge], so does one whose next run would come too late, with [ReasonAge].
//
// The delay depends on the message's id, its stored attempt number and the settings alone, jitter included: to
// decide again gives the same, in any process. It is never above the curve's maximum, at any attempt number.
//
// A panic in a matcher, a hook or a method of the handler's error does not lose the decision.
//
// # Not promised
//
// What the handler postpones has no limit here, neither in number nor in age. Age counts from the first enqueue
// to the claim of the run, by the server's clock: a message's own delay is part of it, the time that the run took
// is not, and a replayed dead letter is as old as before. Plain members have no age.
//
// A decided delay is not exact: the server promotes what is due when somebody claims.
//
// See the example of [New].
package retry
