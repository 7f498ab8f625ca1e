package zqtest

import (
	"testing"
	"time"
)

// pollEvery is how often a condition is looked at: rarely enough to leave a
// two-core machine alone, often enough not to be felt.
const pollEvery = 2 * time.Millisecond

// Eventually returns as soon as cond holds and fails the test, naming what was
// awaited, if it does not within timeout. cond runs on the caller's goroutine,
// at least once. Call it from the goroutine of the test. Where the code under
// test can give a signal, [Wait] is better.
func Eventually(t testing.TB, timeout time.Duration, cond func() bool, what string) {
	t.Helper()
	if !poll(timeout, cond) {
		t.Fatalf("zqtest: not within %v: %s", timeout, what)
	}
}

// Wait returns the next value of ch and fails the test if none comes within
// timeout. A closed channel counts as a signal and gives the zero value. Call
// it from the goroutine of the test.
func Wait[T any](t testing.TB, ch <-chan T, timeout time.Duration) T {
	t.Helper()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case v := <-ch:
		return v
	case <-timer.C:
	}
	var zero T
	t.Fatalf("zqtest: no %T within %v", zero, timeout)
	return zero
}

// poll looks at cond until it holds or the limit has passed.
func poll(limit time.Duration, cond func() bool) bool {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		if cond() {
			return true
		}
		select {
		case <-timer.C:
			return cond() // the goroutine may have slept through the limit
		case <-ticker.C:
		}
	}
}
