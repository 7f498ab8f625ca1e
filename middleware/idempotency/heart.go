package idempotency

import (
	"context"
	"slices"
	"sync"
	"time"
)

// heart renews the marks of all runs that are under way, every third of their lifetime, MaxBatch in a call. It is a
// timer rather than a goroutine: nothing is left of it when no run is.
type heart struct {
	every time.Duration
	begin func([]Claim) []Answer // bounded by a timeout

	mu    sync.Mutex
	marks map[*mark]struct{}
	armed bool          // a beat is under way or will come
	over  chan struct{} // closed at the end of the beat under way
}

// mark is the mark of one run.
type mark struct {
	claim  Claim
	taken  context.CancelCauseFunc // ends the handler's context
	inBeat bool                    // guarded by the heart's mutex
}

func newHeart(every time.Duration, begin func([]Claim) []Answer) *heart {
	return &heart{every: every, begin: begin, marks: make(map[*mark]struct{})}
}

func (h *heart) add(m *mark) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.marks[m] = struct{}{}
	if !h.armed {
		h.armed = true
		time.AfterFunc(h.every, h.beat)
	}
}

// remove stops renewing a mark. If it is being renewed just now it waits for the end of that, or of ctx: a renewal
// that arrives after the mark was cleared would bring it back.
func (h *heart) remove(ctx context.Context, m *mark) {
	h.mu.Lock()
	delete(h.marks, m)
	over := h.over
	waits := m.inBeat
	h.mu.Unlock()
	if !waits {
		return
	}
	select {
	case <-over:
	case <-ctx.Done():
	}
}

// beat renews all marks there are, and comes again while there are any: sooner if some could not be renewed.
func (h *heart) beat() {
	marks := h.start()
	if len(marks) == 0 {
		return
	}
	next := h.every
	for part := range slices.Chunk(marks, MaxBatch) {
		claims := make([]Claim, len(part))
		for i, m := range part {
			claims[i] = m.claim
		}
		for i, a := range h.begin(claims) {
			switch {
			case a.Err != nil:
				next = h.every / 4
			case !a.Granted:
				part[i].taken(ErrTaken)
			}
		}
	}
	h.end(marks, next)
}

func (h *heart) start() []*mark {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.marks) == 0 {
		h.armed = false
		return nil
	}
	marks := make([]*mark, 0, len(h.marks))
	for m := range h.marks {
		m.inBeat = true
		marks = append(marks, m)
	}
	h.over = make(chan struct{})
	return marks
}

func (h *heart) end(marks []*mark, next time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range marks {
		m.inBeat = false
	}
	close(h.over)
	time.AfterFunc(next, h.beat)
}
