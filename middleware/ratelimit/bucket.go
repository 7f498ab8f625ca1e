package ratelimit

import (
	"hash/fnv"
	"slices"
	"time"

	"golang.org/x/time/rate"
)

// lineSpare is how many used slots may stay in a line beside as many as there are others.
const lineSpare = 64

// bucket is one name of a LocalLimiter, which guards it.
type bucket struct {
	name string
	rate *rate.Limiter
	due  map[string]time.Time // slots by message
	line []slot               // the same in their order, and some that are used
	over time.Time            // the slot that the last one behind the line can expect
}

type slot struct {
	id string
	at time.Time
}

func (b *bucket) book(id string, at time.Time) {
	b.due[id] = at
	b.line = append(b.line, slot{id, at})
}

// forget drops the slots of before; it says how many were not used.
func (b *bucket) forget(before time.Time) (unused int) {
	n := 0
	for n < len(b.line) && b.line[n].at.Before(before) {
		if b.holds(b.line[n]) {
			delete(b.due, b.line[n].id)
			unused++
		}
		n++
	}
	if n > 0 {
		b.line = b.line[n:]
		b.shrink()
	}
	return unused
}

// release takes a message's slot off the books.
func (b *bucket) release(id string) {
	delete(b.due, id)
	b.shrink()
}

func (b *bucket) holds(s slot) bool {
	at, ok := b.due[s.id]
	return ok && at.Equal(s.at)
}

// shrink keeps what is remembered in proportion to the slots that are still to be used. A map keeps the room that it
// once needed, so an empty one makes place for a new one.
func (b *bucket) shrink() {
	switch {
	case len(b.due) == 0:
		b.due, b.line = map[string]time.Time{}, nil
	case len(b.line) > 2*len(b.due)+lineSpare:
		b.line = slices.DeleteFunc(b.line, func(s slot) bool { return !b.holds(s) })
	}
}

// behind gives a message the wait that brings it back when the line ahead of it is about half worked off. at is the
// first slot that is free. Whoever comes later is told to come later, so that they do not all come at once.
func (b *bucket) behind(at, now time.Time, p *pace) time.Duration {
	if b.over.Before(at) {
		b.over = at
	}
	if most := now.Add(p.longest() + p.horizon()); b.over.After(most) {
		b.over = most
	}
	half := p.horizon() / 2
	wait := max(b.over.Sub(now)-half, min(at.Sub(now), half))
	b.over = b.over.Add(p.interval())
	return wait
}

// idle tells whether it makes no difference to forget the bucket.
func (b *bucket) idle(before, now time.Time) bool {
	return b.rate.TokensAt(now) >= float64(b.rate.Burst()) && (len(b.line) == 0 || b.line[len(b.line)-1].at.Before(before))
}

// spread bounds the wait of a message without a slot; those at the bound come back in the second half of it, each at
// its own time.
func spread(wait, longest time.Duration, id string) time.Duration {
	if wait < longest {
		return max(wait, time.Microsecond)
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	return longest/2 + time.Duration(float64(longest/2)*float64(h.Sum32())/(1<<32))
}
