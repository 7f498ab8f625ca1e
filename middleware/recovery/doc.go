// Package recovery turns a panic into an error. It belongs twice into a chain: outermost, for panics of the chain
// itself, and next to the handler, so that everything between, retry above all, sees an error like any other.
//
// # Promised
//
// A panic of what is wrapped, panic(nil) included, becomes a *zq.PanicError with the panic's value and the stack
// where it happened. It is tried again as other errors are, unless [AsDead] says otherwise. If the panic's value is
// an error, errors.Is and errors.As find it, so that a rule of retry, or a zq.Dead that was panicked with, counts.
// [OnPanic] is told; its own panic changes nothing.
//
// # Not promised
//
// runtime.Goexit, as called by a test's FailNow, is no panic and passes by; the core counts such a run as failed. A
// panic on a goroutine that the handler has started ends the process: no other goroutine can recover it. Nor can
// what the runtime ends by itself be recovered, such as concurrent writes to a map.
//
// See the example of [New].
package recovery
