package retry_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/zqueue/zqueue/middleware/retry"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// curves draws settings that Validate takes, the corners often.
func curves() *rapid.Generator[retry.Curve] {
	return rapid.Custom(func(t *rapid.T) retry.Curve {
		longest := rapid.OneOf(
			rapid.Just(retry.MinDelay), rapid.Just(retry.MaxDelay),
			rapid.Map(rapid.Int64Range(int64(retry.MinDelay), int64(retry.MaxDelay)), func(n int64) time.Duration { return time.Duration(n) }),
		).Draw(t, "max")
		return retry.Curve{
			Initial: time.Duration(rapid.Int64Range(int64(retry.MinDelay), int64(longest)).Draw(t, "initial")),
			Max:     longest,
			Multiplier: rapid.OneOf(
				rapid.Float64Range(1, retry.MaxMultiplier), rapid.Float64Range(1, 1.001), rapid.Just(1.0), rapid.Just(2.0),
			).Draw(t, "multiplier"),
			Jitter: rapid.OneOf(rapid.Float64Range(0, 1), rapid.Just(0.0), rapid.Just(1.0)).Draw(t, "jitter"),
		}
	})
}

func attempts() *rapid.Generator[int] {
	return rapid.OneOf(
		rapid.IntRange(1, 100), rapid.IntRange(1000, 1100), rapid.IntRange(1, 1_000_000), rapid.Int(),
		rapid.SampledFrom([]int{math.MinInt, -1, 0, 1, math.MaxInt - 1, math.MaxInt}),
	)
}

// FAULTS B43: the delay is from the stored attempt, never above the maximum, and the same each time.
func TestCurveDelay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := curves().Draw(t, "curve")
		id := rapid.String().Draw(t, "id")
		attempt := attempts().Draw(t, "attempt")
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		got := c.Delay(id, attempt)
		if got < 0 || got > c.Max {
			t.Fatalf("%v is not in 0 to %v", got, c.Max)
		}
		if again := c.RetryDelay(&zq.Delivery{ID: id, Attempt: attempt}, errOwn); again != got {
			t.Fatalf("%v, then %v", got, again)
		}
		flat := c
		flat.Jitter = 0
		mid := float64(flat.Delay("", attempt))
		low, high := mid*(1-c.Jitter), min(mid*(1+c.Jitter), float64(c.Max))
		if f := float64(got); f < math.Floor(low) || f > high+1 {
			t.Fatalf("%v is not in %v to %v", got, time.Duration(low), time.Duration(high))
		}
	})
}

// Without jitter the delay is the closed formula, less what steps of whole nanoseconds cut off: below one
// nanosecond of Initial a step, and 1024 steps at most.
func TestCurveIsTheFormula(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := curves().Draw(t, "curve")
		c.Jitter = 0
		attempt := attempts().Draw(t, "attempt")
		n := float64(max(attempt, 1))
		formula := min(float64(c.Max), float64(c.Initial)*math.Pow(c.Multiplier, n-1))
		got := float64(c.Delay("x", attempt))
		slack := formula*min(n, 1024)/float64(c.Initial) + 1
		if got > formula*(1+1e-9)+1 || got < formula-slack {
			t.Fatalf("%v, the formula says %v", time.Duration(got), time.Duration(formula))
		}
		if attempt < math.MaxInt {
			if next := c.Delay("x", attempt+1); float64(next) < got {
				t.Fatalf("attempt %d: %v, the next: %v", attempt, time.Duration(got), next)
			}
		}
	})
}

func TestCurveSteps(t *testing.T) {
	t.Parallel()
	c := retry.Curve{Initial: 500 * time.Millisecond, Max: 10 * time.Second, Multiplier: 1.5}
	for attempt, want := range map[int]time.Duration{
		math.MinInt: 500 * time.Millisecond, 0: 500 * time.Millisecond, 1: 500 * time.Millisecond, 2: 750 * time.Millisecond,
		3: 1125 * time.Millisecond, 8: 8542968750, 9: 10 * time.Second, 1000: 10 * time.Second, math.MaxInt: 10 * time.Second,
	} {
		if got := c.Delay("a", attempt); got != want {
			t.Errorf("attempt %d: %v, want %v", attempt, got, want)
		}
	}
	if got, want := retry.DefaultCurve(), (retry.Curve{Initial: time.Second, Max: 5 * time.Minute, Multiplier: 2, Jitter: 0.25}); got != want {
		t.Errorf("the default is %+v", got)
	}
	slow := retry.Curve{Initial: time.Millisecond, Max: time.Hour, Multiplier: 1.0000001} // never moves a whole nanosecond a step
	if got := slow.Delay("a", 1_000_000_000); got != time.Hour {
		t.Errorf("a slow curve is at %v in the end", got)
	}
}

// Messages that fail together come back apart, at the maximum too, and a message not in step with itself.
func TestCurveSpreads(t *testing.T) {
	t.Parallel()
	c := retry.Curve{Initial: time.Second, Max: time.Minute, Jitter: 0.25}
	for _, attempt := range []int{1, 4, 50} {
		mid := min(time.Minute, time.Second<<(attempt-1))
		if attempt == 50 {
			mid = time.Minute
		}
		tenths := map[int64]int{}
		for i := range 4000 {
			tenths[int64(c.Delay(fmt.Sprint("id-", i), attempt)/(mid/100))]++
		}
		for slot, n := range tenths {
			if n > 400 { // of about 25 to 50 slots
				t.Errorf("attempt %d: %d of 4000 in one hundredth, %d", attempt, n, slot)
			}
		}
		if len(tenths) < 25 {
			t.Errorf("attempt %d: only %d hundredths are used", attempt, len(tenths))
		}
	}
	near := 0
	for i := range 1000 {
		id := fmt.Sprint("id-", i)
		if d := c.Delay(id, 50) - c.Delay(id, 51); d.Abs() < 150*time.Millisecond { // of 15 s
			near++
		}
	}
	if near > 60 {
		t.Errorf("%d of 1000 messages have nearly the same delay for the next attempt", near)
	}
}

// FAULTS B29: every duration has an exact meaning or is refused, and Delay stands all of them.
func TestCurveValidate(t *testing.T) {
	t.Parallel()
	const fine = ""
	for _, c := range []struct {
		curve retry.Curve
		want  string
	}{
		{retry.Curve{}, fine},
		{retry.Curve{Initial: 1}, "Initial"},
		{retry.Curve{Initial: -1}, "Initial"},
		{retry.Curve{Initial: 999 * time.Microsecond}, "Initial"},
		{retry.Curve{Initial: time.Millisecond}, fine},
		{retry.Curve{Initial: 5 * time.Minute}, fine},
		{retry.Curve{Initial: 5*time.Minute + 1}, "Initial"},
		{retry.Curve{Max: 1}, "Max Initial"},
		{retry.Curve{Max: -1}, "Max Initial"},
		{retry.Curve{Initial: time.Millisecond, Max: 999 * time.Microsecond}, "Max"},
		{retry.Curve{Initial: time.Millisecond, Max: time.Millisecond}, fine},
		{retry.Curve{Max: retry.MaxDelay}, fine},
		{retry.Curve{Max: retry.MaxDelay + 1}, "Max"},
		{retry.Curve{Max: math.MaxInt64}, "Max"},
		{retry.Curve{Initial: math.MinInt64, Max: math.MinInt64}, "Max Initial"},
		{retry.Curve{Multiplier: 1}, fine},
		{retry.Curve{Multiplier: 0.999}, "Multiplier"},
		{retry.Curve{Multiplier: -2}, "Multiplier"},
		{retry.Curve{Multiplier: 1000}, fine},
		{retry.Curve{Multiplier: 1000.5}, "Multiplier"},
		{retry.Curve{Multiplier: math.NaN()}, "Multiplier"},
		{retry.Curve{Multiplier: math.Inf(1)}, "Multiplier"},
		{retry.Curve{Jitter: 1}, fine},
		{retry.Curve{Jitter: 1.01}, "Jitter"},
		{retry.Curve{Jitter: -0.01}, "Jitter"},
		{retry.Curve{Jitter: math.NaN()}, "Jitter"},
		{retry.Curve{Initial: -1, Max: -1, Multiplier: -1, Jitter: -1}, "Max Initial Multiplier Jitter"},
	} {
		err := c.curve.Validate()
		got := strings.ReplaceAll(strings.Join(fields(err), " "), "retry.Curve.", "")
		if got != c.want || (err != nil) != errors.Is(err, zq.ErrInvalid) {
			t.Errorf("%+v: faults %q, want %q", c.curve, got, c.want)
		}
		for _, attempt := range []int{math.MinInt, 0, 1, 7, 5000, math.MaxInt} {
			if d := c.curve.Delay("a", attempt); d < 0 || d > retry.MaxDelay || err != nil && d == 0 {
				t.Errorf("%+v: attempt %d waits %v", c.curve, attempt, d)
			}
		}
	}
}
