package metrics

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// reader keeps the last reading of a source, for all who collect.
type reader struct {
	cfg    watchConfig
	src    DepthSource
	missed func() // a reading failed or took too long
	life   context.Context
	end    context.CancelFunc

	mu     sync.Mutex
	last   zq.Depth
	at     time.Time // of last; zero for none yet
	tried  time.Time // when the last reading began
	flight *flight   // the one under way
	closed bool
}

// flight is one reading.
type flight struct {
	done   chan struct{}
	failed sync.Once // it is counted once, by whoever gives it up first
}

func newReader(cfg watchConfig, src DepthSource, missed func()) *reader {
	r := &reader{cfg: cfg, src: src, missed: missed}
	r.life, r.end = context.WithCancel(context.Background())
	return r
}

// staleAfter is for how many times Every the last reading serves when there is no newer one.
const staleAfter = 3

// read gives a reading that is recent enough, and false if there is none in time.
func (r *reader) read(ctx context.Context) (zq.Depth, bool) {
	f := r.fly() //nolint:contextcheck // a reading serves all who collect, and must not end with one of them
	if f != nil {
		r.await(ctx, f)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last, !r.closed && !r.at.IsZero() && time.Since(r.at) < staleAfter*r.cfg.every
}

// fly gives the reading to wait for: the one under way, or a new one. It is nil if the last one will do, or if it
// failed and the next try is not due.
func (r *reader) fly() *flight {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	switch {
	case r.closed:
		return nil
	case r.flight != nil && now.Sub(r.tried) >= r.cfg.within:
		return nil // others have waited long enough for it
	case r.flight != nil:
		return r.flight
	case !r.tried.IsZero() && now.Sub(r.tried) < r.cfg.every:
		return nil
	}
	r.flight, r.tried = &flight{done: make(chan struct{})}, now
	go r.refresh(r.flight) // a source may be deaf to its context; close waits for it
	return r.flight
}

// await waits for a reading, but not longer than a scrape may take.
func (r *reader) await(ctx context.Context, f *flight) {
	t := time.NewTimer(r.cfg.within)
	defer t.Stop()
	select {
	case <-f.done:
	case <-t.C:
		f.failed.Do(r.missed)
	case <-ctx.Done():
	}
}

// errGone is the result of a source that ended its goroutine.
var errGone = errors.New("the source did not return")

// refresh makes one reading. One that comes too late for whoever waited still serves the next.
func (r *reader) refresh(f *flight) {
	var d zq.Depth
	err := errGone
	defer func() { r.landed(f, d, err) }()
	d, err = r.ask()
}

func (r *reader) landed(f *flight, d zq.Depth, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flight = nil
	if err == nil {
		r.last, r.at = d, time.Now()
	} else if !r.closed {
		f.failed.Do(r.missed)
	}
	close(f.done)
}

// ask contains what the source does.
func (r *reader) ask() (d zq.Depth, err error) {
	ctx, cancel := context.WithTimeout(r.life, r.cfg.within)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the source panicked: %v", v)
		}
	}()
	return r.src.Depth(ctx)
}

// close ends the reader and waits for a reading under way.
func (r *reader) close() error {
	r.mu.Lock()
	r.closed = true
	f := r.flight
	r.mu.Unlock()
	r.end()
	if f == nil {
		return nil
	}
	t := time.NewTimer(r.cfg.within)
	defer t.Stop()
	select {
	case <-f.done:
		return nil
	case <-t.C:
		return errors.New("a reading has not ended; it ends when its source returns")
	}
}
