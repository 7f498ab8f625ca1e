package ratelimit

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

// books are checked against what they say: the sum of slots, and how much is remembered for each. forward says that the
// clock has never gone back.
func (l *LocalLimiter) books(t *testing.T, forward bool) (lines int) {
	t.Helper()
	slots := 0
	for e := l.used.Front(); e != nil; e = e.Next() {
		b := e.Value.(*bucket)
		slots += len(b.due)
		lines += len(b.line)
		if len(b.line) > 2*len(b.due)+lineSpare {
			t.Fatalf("%s remembers %d slots, of which %d are to be used", b.name, len(b.line), len(b.due))
		}
		if most := l.cfg.line + int(l.cfg.kept()/l.cfg.interval()) + 1; forward && len(b.due) > most { // ahead, and late
			t.Fatalf("%s has given away %d slots, want %d at most", b.name, len(b.due), most)
		}
		if len(b.due) == 0 && b.line != nil {
			t.Fatalf("%s keeps room for %d slots, and has none", b.name, cap(b.line))
		}
	}
	if slots != l.slots || slots > maxSlots || len(l.names) != l.used.Len() {
		t.Fatalf("%d slots are given away, %d by the books; %d names and %d", slots, l.slots, len(l.names), l.used.Len())
	}
	return lines
}

// Messages that come back on time, late or never, of names that come and go: what is remembered stays in proportion to
// the slots that are to be used, also under a clock that goes back.
func TestLocalRemembersInProportion(t *testing.T) {
	t.Parallel()
	for _, forward := range []bool{true, false} {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 0))
		now := time.Unix(1_700_000_000, 0)
		l, err := Local(100, 50, Line(300), MaxNames(8), Clock(func() time.Time { return now }))
		if err != nil {
			t.Fatal(err)
		}
		most := 0
		for i := range 60_000 {
			name := strconv.Itoa(i/5000*3 + r.IntN(6)) // old ones go, with slots that nobody uses
			if _, err := l.Reserve(t.Context(), name, strconv.Itoa(r.IntN(2000))); err != nil {
				t.Fatal(err)
			}
			now = now.Add(step(r, forward))
			if i%100 == 0 {
				l.books(t, forward)
				most = max(most, l.slots)
			}
		}
		if most < 1000 {
			t.Errorf("%d slots were given away at most: this shows little", most)
		}
		now = now.Add(time.Hour)
		for name := range l.names {
			if _, err := l.Reserve(t.Context(), name, "last"); err != nil {
				t.Fatal(err)
			}
		}
		if lines := l.books(t, forward); lines > 0 || l.slots > 0 {
			t.Errorf("%d slots are remembered after an hour, %d of them to be used", lines, l.slots)
		}
	}
}

// step is how far a clock goes from one message to the next.
func step(r *rand.Rand, forward bool) time.Duration {
	switch r.IntN(5000) {
	case 0:
		return time.Minute
	case 1:
		if !forward {
			return -time.Minute
		}
	}
	return time.Duration(r.IntN(200)) * time.Microsecond
}

// A long run on one name: used slots do not pile up, though the burst keeps them for hours.
func TestLocalForgetsUsedSlots(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	l, err := Local(1, 20_000, Clock(func() time.Time { return now }))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(id string) time.Duration {
		wait, err := l.Reserve(t.Context(), "n", id)
		if err != nil {
			t.Fatal(err)
		}
		return wait
	}
	for i := range 20_000 {
		ask(strconv.Itoa(i))
	}
	ask("lost") // it has the first slot and never comes
	for i := range 10_000 {
		id := "m" + strconv.Itoa(i)
		now = now.Add(ask(id))
		if ask(id) != 0 {
			t.Fatal("a slot that is due is not given")
		}
	}
	if lines := l.books(t, true); lines > 2+lineSpare {
		t.Errorf("%d slots are remembered, for one to be used", lines)
	}
}

// With no slot left for any name, messages are told to come back, and each runs all the same.
func TestLocalSlotsOfAllNamesAreBounded(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	l, err := Local(100_000, 1, Line(MaxLine), Clock(func() time.Time { return now }))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(name, id string) time.Duration {
		wait, err := l.Reserve(t.Context(), name, id)
		if err != nil || wait < 0 {
			t.Fatalf("told %s, %v", wait, err)
		}
		return wait
	}
	for name := range 3 {
		for i := range MaxLine {
			ask(strconv.Itoa(name), strconv.Itoa(i))
		}
	}
	if l.books(t, true); l.slots != maxSlots {
		t.Errorf("%d slots are given away, want all %d", l.slots, maxSlots)
	}
	for range 100 {
		wait := ask("2", "x")
		if wait == 0 {
			return
		}
		now = now.Add(wait)
	}
	t.Error("a message without a slot has asked a hundred times")
}
