// Package redo paces repeated tries of calls to Redis: growing, capped, jittered waits that end with their context.
package redo

import (
	"context"
	"math/rand/v2"
	"time"
)

// Pace is a sequence of waits. The zero value is useless; call New. Not safe for concurrent use.
type Pace struct {
	base, most, next time.Duration
}

// New starts a pace at base, doubling up to most.
func New(base, most time.Duration) *Pace { return &Pace{base: base, most: most, next: base} }

// Reset starts over, after a success.
func (p *Pace) Reset() { p.next = p.base }

// Next is the next pause: between half of the full one and all of it, so that many clients do not come back
// in step.
func (p *Pace) Next() time.Duration {
	d := p.next/2 + rand.N(p.next/2+1) //nolint:gosec // jitter, not a secret
	p.next = min(p.next*2, p.most)
	return d
}

// Wait waits for the next pause. It returns the cause of ctx if that ends first.
func (p *Pace) Wait(ctx context.Context) error { return Sleep(ctx, p.Next()) }

// Sleep waits for d or the end of ctx, whose cause it then returns.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
