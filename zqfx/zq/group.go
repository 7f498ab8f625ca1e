package zq

import (
	"context"
	"fmt"
	"sync"

	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// Bounds of one step, so that no script holds Redis up for long and no command grows without end.
const (
	stepMessages = 1000
	stepBytes    = 8 << 20
)

// group commits concurrent Enqueue calls together: whoever comes while a step is under way joins the next.
// Alone, a call goes out at once. Its one goroutine lives only while calls wait.
type group struct {
	send func(context.Context, []script.Placement) ([]Receipt, error)

	mu      sync.Mutex
	waiting []*call
	flying  bool
	closed  bool
	inside  int           // calls that have entered and not left
	idle    chan struct{} // closed once closed and nobody is inside
}

// call is one Enqueue. Its fields are guarded by the group's mutex until done is closed.
type call struct {
	place   script.Placement
	taken   bool
	receipt Receipt
	err     error
	done    chan struct{}
}

func newGroup(send func(context.Context, []script.Placement) ([]Receipt, error)) *group {
	return &group{send: send, idle: make(chan struct{})}
}

// enter counts a call in; each needs a leave.
func (g *group) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return ErrClosed
	}
	g.inside++
	return nil
}

func (g *group) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.closed && g.inside == 0 {
		close(g.idle)
	}
}

// close refuses new calls and waits for those inside.
func (g *group) close(ctx context.Context) error {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		if g.inside == 0 {
			close(g.idle)
		}
	}
	g.mu.Unlock()
	select {
	case <-g.idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// join sends one message with whatever else is waiting, and waits for its receipt.
func (g *group) join(ctx context.Context, place script.Placement) (Receipt, error) {
	if ctx.Err() != nil {
		return Receipt{}, context.Cause(ctx)
	}
	if err := g.enter(); err != nil {
		return Receipt{}, err
	}
	c := &call{place: place, done: make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, c)
	if !g.flying {
		g.flying = true
		go g.fly() //nolint:contextcheck // a step belongs to several callers, and must not end with one of them
	}
	g.mu.Unlock()
	select {
	case <-c.done:
		return c.receipt, c.err
	case <-ctx.Done():
		return Receipt{}, g.abandon(ctx, c)
	}
}

// abandon takes a call back whose caller waits no longer. If it is on its way that is too late.
func (g *group) abandon(ctx context.Context, c *call) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.taken {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, context.Cause(ctx))
	}
	for i := range g.waiting {
		if g.waiting[i] == c {
			g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
			g.inside--
			break
		}
	}
	if g.closed && g.inside == 0 {
		close(g.idle)
	}
	return context.Cause(ctx)
}

// fly sends step after step until nobody waits. It is started by join and ends by itself; a step is bounded
// by the tries of again, not by any caller's context, because it belongs to several.
func (g *group) fly() {
	for {
		step := g.take()
		if len(step) == 0 {
			return
		}
		places := make([]script.Placement, len(step))
		for i, c := range step {
			places[i] = c.place
		}
		receipts, err := g.send(context.Background(), places)
		for i, c := range step {
			c.receipt, c.err = receiptOf(receipts, i), err
			close(c.done)
			g.leave()
		}
	}
}

func (g *group) take() []*call {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, size := 0, 0
	for n < len(g.waiting) && n < stepMessages {
		size += len(g.waiting[n].place.Envelope)
		if n > 0 && size > stepBytes {
			break
		}
		g.waiting[n].taken = true
		n++
	}
	step := g.waiting[:n:n]
	g.waiting = g.waiting[n:]
	if len(g.waiting) == 0 {
		g.waiting = nil
	}
	g.flying = n > 0
	return step
}

// stepEnd bounds a step of a batch that starts at from.
func stepEnd(places []script.Placement, from int) int {
	size := 0
	for i := from; i < len(places); i++ {
		size += len(places[i].Envelope)
		if i-from == stepMessages || i > from && size > stepBytes {
			return i
		}
	}
	return len(places)
}
