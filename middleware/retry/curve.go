package retry

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Limits of a Curve.
const (
	MinDelay      = time.Millisecond
	MaxDelay      = 30 * 24 * time.Hour
	MaxMultiplier = 1000
)

// Curve is how long to wait before the next attempt: min(Max, Initial·Multiplier^(attempt−1)), spread by Jitter.
// A zero Initial, Max or Multiplier means its default; a zero Jitter means none. It is an immutable value and safe
// for concurrent use.
type Curve struct {
	// Initial is the delay after the first failure: MinDelay to Max, default 1 s.
	Initial time.Duration
	// Max is the longest delay, jitter included: MinDelay to MaxDelay, default 5 min.
	Max time.Duration
	// Multiplier is what each delay grows by: 1 to MaxMultiplier, default 2.
	Multiplier float64
	// Jitter spreads a delay d over [d·(1−Jitter), min(Max, d·(1+Jitter))]: 0 to 1.
	Jitter float64
}

// DefaultCurve is what New uses unless told otherwise: 1 s doubling to 5 min, with a jitter of a quarter.
func DefaultCurve() Curve { return Curve{Jitter: 0.25}.filled() }

// Validate lists what is out of range.
func (c Curve) Validate() error { return errors.Join(c.faults("retry.Curve")...) }

// Delay is the delay before the run after this attempt, which counts from 1; a lower number counts as 1. The same
// id and attempt give the same delay. It is in [0, Max]; what Validate refuses is drawn to the nearest value in
// range.
func (c Curve) Delay(id string, attempt int) time.Duration {
	c = c.drawn()
	return c.spread(c.grown(max(attempt, 1)), id, attempt)
}

// RetryDelay is Delay in the form that zq.ConsumerConfig.RetryDelay takes, for consumers without this middleware.
func (c Curve) RetryDelay(d *zq.Delivery, _ error) time.Duration { return c.Delay(d.ID, d.Attempt) }

// replay is how many steps of backoff are taken at most. A curve that has not reached its end by then grows so
// slowly that the closed formula differs from the steps by less than replay nanoseconds in Initial.
const replay = 1024

// grown is the delay without jitter. A fresh ExponentialBackOff each time, because one is not safe for concurrent
// use; its own jitter stays off, because it goes beyond the maximum; so does its limit on the elapsed time,
// because that begins anew with each process.
func (c Curve) grown(attempt int) time.Duration {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(c.Initial), backoff.WithMaxInterval(c.Max), backoff.WithMultiplier(c.Multiplier),
		backoff.WithRandomizationFactor(0), backoff.WithMaxElapsedTime(0),
	)
	var delay time.Duration
	for range min(attempt, replay) {
		next := b.NextBackOff()
		if next == backoff.Stop || next >= c.Max {
			return c.Max
		}
		if next == delay { // it will never grow, or by less than a nanosecond a step
			break
		}
		delay = next
	}
	if attempt <= replay {
		return delay
	}
	closed := float64(c.Initial) * math.Pow(c.Multiplier, float64(attempt-1))
	if closed >= float64(c.Max) {
		return c.Max
	}
	return max(delay, time.Duration(closed))
}

// spread applies the jitter. At the top the range loses its upper half rather than its width at one point: cut off
// after the fact, half of all messages would come back together.
func (c Curve) spread(delay time.Duration, id string, attempt int) time.Duration {
	if c.Jitter == 0 {
		return delay
	}
	low := float64(delay) * (1 - c.Jitter)
	high := min(float64(c.Max), float64(delay)*(1+c.Jitter))
	return min(max(time.Duration(low+part(id, attempt)*(high-low)), 0), c.Max)
}

// part is a number in [0, 1) that depends on id and attempt alone. FNV-1a moves the last bytes hardly into the
// upper bits, so the finalizer of SplitMix64 (Steele, Lea, Flood 2014) mixes them.
func part(id string, attempt int) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	x := h.Sum64() + uint64(attempt)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return float64(x>>11) / (1 << 53)
}

// filled puts defaults in the place of zeros.
func (c Curve) filled() Curve {
	if c.Initial == 0 {
		c.Initial = time.Second
	}
	if c.Max == 0 {
		c.Max = 5 * time.Minute
	}
	if c.Multiplier == 0 {
		c.Multiplier = 2
	}
	return c
}

// drawn draws into range what is out of it.
func (c Curve) drawn() Curve {
	c = c.filled()
	c.Max = min(max(c.Max, MinDelay), MaxDelay)
	c.Initial = min(max(c.Initial, MinDelay), c.Max)
	if !(c.Multiplier >= 1) { // NaN too
		c.Multiplier = 1
	}
	c.Multiplier = min(c.Multiplier, MaxMultiplier)
	if !(c.Jitter >= 0) {
		c.Jitter = 0
	}
	c.Jitter = min(c.Jitter, 1)
	return c
}

func (c Curve) faults(field string) []error {
	c = c.filled()
	var faults []error
	if c.Max < MinDelay || c.Max > MaxDelay {
		faults = append(faults, invalid(field+".Max", c.Max, fmt.Sprintf("%s to %s", MinDelay, MaxDelay)))
	}
	if most := min(max(c.Max, MinDelay), MaxDelay); c.Initial < MinDelay || c.Initial > most {
		faults = append(faults, invalid(field+".Initial", c.Initial, fmt.Sprintf("%s to %s", MinDelay, most)))
	}
	if !(c.Multiplier >= 1 && c.Multiplier <= MaxMultiplier) { // NaN too
		faults = append(faults, invalid(field+".Multiplier", c.Multiplier, fmt.Sprintf("1 to %d", MaxMultiplier)))
	}
	if !(c.Jitter >= 0 && c.Jitter <= 1) {
		faults = append(faults, invalid(field+".Jitter", c.Jitter, "0 to 1"))
	}
	return faults
}

func invalid(field string, value any, want string) error {
	return &zq.InvalidError{Field: field, Value: fmt.Sprint(value), Want: want}
}
