package middleware

import "fmt"

// Role is what a layer is there for. But for RoleUser, a plan has at most one layer of each.
type Role int

// Roles, in the standard order from the outside to the inside.
const (
	roleNone Role = iota
	// RoleRecovery catches panics of the chain itself.
	RoleRecovery
	// RoleTracing makes spans.
	RoleTracing
	// RoleMetrics counts and measures.
	RoleMetrics
	// RoleLogging writes a line for each run.
	RoleLogging
	// RoleDeadLetter looks after messages that will not run again.
	RoleDeadLetter
	// RoleRetry decides when a failed message runs again.
	RoleRetry
	// RoleTimeout bounds a run.
	RoleTimeout
	// RoleSequence holds back messages whose predecessor is not confirmed.
	RoleSequence
	// RoleIdempotency skips what was done before.
	RoleIdempotency
	// RoleRateLimit puts off what comes too fast.
	RoleRateLimit
	// RoleUser is a layer of the application's own.
	RoleUser
	// RoleInnerRecovery catches panics of the handler.
	RoleInnerRecovery
)

var roleNames = [...]string{
	roleNone: "none", RoleRecovery: "recovery", RoleTracing: "tracing", RoleMetrics: "metrics", RoleLogging: "logging",
	RoleDeadLetter: "deadletter", RoleRetry: "retry", RoleTimeout: "timeout", RoleSequence: "sequence",
	RoleIdempotency: "idempotency", RoleRateLimit: "ratelimit", RoleUser: "user", RoleInnerRecovery: "inner recovery",
}

// String is the role's name, such as "retry".
func (r Role) String() string {
	if r < 0 || int(r) >= len(roleNames) {
		return fmt.Sprintf("role(%d)", int(r))
	}
	return roleNames[r]
}
