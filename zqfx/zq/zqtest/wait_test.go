package zqtest_test

import (
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

func TestEventuallyReturnsWhenTheConditionHolds(t *testing.T) {
	t.Parallel()
	looks := 0
	zqtest.Eventually(t, limit, func() bool { looks++; return looks == 3 }, "three looks")
	if looks != 3 {
		t.Errorf("looked %d times", looks)
	}
}

func TestEventuallyFailsAndNamesWhatWasAwaited(t *testing.T) {
	t.Parallel()
	complaint := failing(t, func(t testing.TB) {
		zqtest.Eventually(t, time.Millisecond, func() bool { return false }, "pigs to fly")
	})
	wantComplaint(t, complaint, "pigs to fly", "1ms")
}

func TestWait(t *testing.T) {
	t.Parallel()
	ch := make(chan int, 1)
	ch <- 7
	if got := zqtest.Wait(t, ch, limit); got != 7 {
		t.Errorf("got %d", got)
	}
	wantComplaint(t, failing(t, func(t testing.TB) { zqtest.Wait(t, ch, time.Millisecond) }), "no int within 1ms")
	close(ch)
	if got := zqtest.Wait(t, ch, limit); got != 0 {
		t.Errorf("got %d from a closed channel", got)
	}
}
