package middleware

import (
	"fmt"
	"slices"
)

// rule says that one role must be outside others, if both are there, and why.
type rule struct {
	outer Role
	inner []Role
	why   string
}

// decided are the roles that decide on a run, or change what the run returns.
var decided = []Role{
	RoleDeadLetter, RoleRetry, RoleTimeout, RoleSequence, RoleIdempotency, RoleRateLimit, RoleInnerRecovery,
}

var rules = []rule{
	{RoleRecovery, slices.Concat([]Role{RoleTracing, RoleMetrics, RoleLogging, RoleUser}, decided),
		"it catches panics of the chain itself"},
	{RoleTracing, []Role{RoleMetrics, RoleLogging}, "exemplars and log lines need the span"},
	{RoleTracing, decided, "the span must see what becomes of the message"},
	{RoleMetrics, decided, "it counts what becomes of the message"},
	{RoleLogging, decided, "it says what becomes of the message"},
	{RoleDeadLetter, []Role{RoleRetry}, "what retry gives up on must reach it"},
	{RoleDeadLetter, []Role{RoleTimeout, RoleSequence, RoleIdempotency, RoleRateLimit, RoleInnerRecovery},
		"what they send to the dead letters must pass it"},
	{RoleRetry, []Role{RoleTimeout}, "it decides on runs that took too long"},
	{RoleRetry, []Role{RoleSequence, RoleRateLimit}, "it decides on their errors"},
	{RoleRetry, []Role{RoleIdempotency}, "a skip is a success, and a failure must free its key before it is tried again"},
	{RoleRetry, []Role{RoleInnerRecovery}, "a panic must be an error by the time it decides"},
	{RoleTimeout, []Role{RoleSequence, RoleIdempotency, RoleRateLimit}, "their calls are part of the run that it bounds"},
	{RoleTimeout, []Role{RoleInnerRecovery}, "the inner recovery stands next to the handler"},
	{RoleSequence, []Role{RoleIdempotency}, "a duplicate that idempotency skips must confirm its number too"},
	{RoleSequence, []Role{RoleRateLimit}, "a message that waits for its predecessor must not use up the rate"},
	{RoleSequence, []Role{RoleInnerRecovery}, "the inner recovery stands next to the handler"},
	{RoleIdempotency, []Role{RoleRateLimit}, "a skipped duplicate must not use up the rate"},
	{RoleIdempotency, []Role{RoleInnerRecovery}, "a panic must be an error that frees the key"},
	{RoleRateLimit, []Role{RoleInnerRecovery}, "the inner recovery stands next to the handler"},
}

// orderFaults lists each rule that the order of layers, outermost first, breaks.
func orderFaults(layers []Layer) []error {
	var faults []error
	for _, r := range rules {
		outer := slices.IndexFunc(layers, func(l Layer) bool { return l.role == r.outer })
		if outer < 0 {
			continue
		}
		for _, l := range layers[:outer] {
			if slices.Contains(r.inner, l.role) {
				faults = append(faults, fault("plan", l.Name()+" outside "+r.outer.String(),
					fmt.Sprintf("%s outside %s: %s", r.outer, l.Name(), r.why)))
			}
		}
	}
	return faults
}
