package idempotency

import (
	"errors"
	"log/slog"
	"testing"
	"time"
)

// Messages are put off longer the longer the store is away, between 1 and 30 seconds, and each change is told once.
func TestOutagePace(t *testing.T) {
	t.Parallel()
	now, told := time.Unix(1000, 0), []bool{}
	o := outage{
		now: func() time.Time { return now }, logger: slog.New(slog.DiscardHandler),
		tell: func(err error) { told = append(told, err != nil) },
	}
	for _, step := range []struct{ after, least, most time.Duration }{
		{0, time.Second, 2 * time.Second}, {2 * time.Second, time.Second, 2 * time.Second},
		{8 * time.Second, 5 * time.Second, 10 * time.Second}, {20 * time.Second, 15 * time.Second, 30 * time.Second},
		{time.Hour, 15 * time.Second, 30 * time.Second},
	} {
		now = now.Add(step.after)
		for range 200 {
			if d := o.failed(errors.New("away")); d < step.least || d > step.most {
				t.Fatalf("%v after the last: %v, want %v to %v", step.after, d, step.least, step.most)
			}
		}
	}
	o.answered() // some answers between failures are no change
	o.failed(errors.New("away"))
	now = now.Add(outageCalm)
	o.answered()
	o.answered()
	o.failed(errors.New("again"))
	if len(told) != 3 || !told[0] || told[1] || !told[2] {
		t.Errorf("told %v, want away, back, away", told)
	}
}

// A message whose key is held looks again after as long as the other has run by then, within bounds.
func TestBusyDelay(t *testing.T) {
	t.Parallel()
	cfg, err := newConfig(nil)
	if err != nil {
		t.Fatal(err)
	}
	g := &guard{cfg: cfg}
	for _, c := range []struct{ age, expires, least, most time.Duration }{
		{0, 5 * time.Minute, 250 * time.Millisecond, 250 * time.Millisecond},
		{4 * time.Second, 5 * time.Minute, 4 * time.Second, 5 * time.Second},
		{time.Hour, 5 * time.Minute, 30 * time.Second, 30 * time.Second},
		{time.Hour, time.Second, 1250 * time.Millisecond, 1563 * time.Millisecond},
		{time.Hour, 0, 250 * time.Millisecond, 313 * time.Millisecond},
	} {
		for range 200 {
			if d := g.busyDelay(Record{Age: c.age, Expires: c.expires}); d < c.least || d > c.most {
				t.Fatalf("age %v, expires in %v: %v, want %v to %v", c.age, c.expires, d, c.least, c.most)
			}
		}
	}
}
