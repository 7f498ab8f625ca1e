package zq

import (
	"context"
	"sync"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// outcome is what is to be recorded of one message.
type outcome struct {
	member string
	keep   time.Duration   // dedupe window of a plain ack; 0 for none
	other  *script.Outcome // anything but a plain ack
	leaves int             // messages that leave the claim with it, itself included
	bytes  int             // of what is attached
	done   chan int        // told the script's code, if somebody waits
	trace  string          // what the run left behind
}

// applied is the code of an outcome that took effect now or, as a repeat, before.
const applied = 1

// claim is one processing set that this process holds. Its outcomes are recorded in the order in which they
// were decided, one settle call at a time.
type claim struct {
	s     *session
	cid   string
	fence int64
	alone bool // it holds one suspect

	claimedAt time.Time // by the server's clock

	ctx    context.Context // of its handlers; ends with ErrLeaseLost or what ends the session's
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	pending []outcome
	queued  bool // waits for a settler, or has one
	left    int  // messages not yet recorded
	lost    bool
	renewed time.Time // when the call was sent that last extended the lease
}

func newClaim(s *session, cid string, got script.Claimed, sent time.Time) *claim {
	c := &claim{s: s, cid: cid, fence: got.Fence, left: len(got.Messages), renewed: sent, alone: got.Status == "suspect", claimedAt: microsTime(got.Now)}
	c.ctx, c.cancel = context.WithCancelCause(s.handlers)
	return c
}

// add queues an outcome for its settle call. After a lost lease, or the end of the settlers, it is refused at
// once.
func (c *claim) add(o outcome) {
	c.s.ending.RLock()
	defer c.s.ending.RUnlock()
	c.mu.Lock()
	if c.lost || c.s.ended {
		c.mu.Unlock()
		o.tell(script.CodeLost)
		return
	}
	c.pending = append(c.pending, o)
	first := !c.queued
	c.queued = true
	c.mu.Unlock()
	if first {
		c.s.dirty <- c
	}
}

func (o *outcome) tell(code int) {
	if o.done != nil {
		o.done <- code
	}
}

// next takes what is to be settled; nothing means that the settler is done with the claim.
func (c *claim) next() []outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, size := 0, 0
	for n < len(c.pending) && n < stepMessages {
		if size += c.pending[n].bytes; n > 0 && size > stepBytes {
			break
		}
		n++
	}
	batch := c.pending[:n:n]
	c.pending = c.pending[n:]
	if len(c.pending) == 0 {
		c.pending = nil
	}
	c.queued = n > 0
	return batch
}

// recorded accounts for outcomes that have an answer.
func (c *claim) recorded(batch []outcome) {
	leaves := 0
	for i := range batch {
		leaves += batch[i].leaves
	}
	c.mu.Lock()
	c.left -= leaves
	over := c.left <= 0
	c.mu.Unlock()
	if over {
		c.s.finished(c)
	}
}

// lose ends a claim whose lease is over: handlers are told, and nothing of it is recorded any more.
func (c *claim) lose() {
	c.mu.Lock()
	if c.lost || c.left <= 0 {
		c.mu.Unlock()
		return
	}
	c.lost = true
	refused, left := c.pending, c.left
	c.pending = nil
	c.mu.Unlock()
	c.cancel(ErrLeaseLost)
	for i := range refused {
		refused[i].tell(script.CodeLost)
	}
	c.s.count.lost.Add(int64(left))
	c.s.log.lostLease(c.cid, left)
	c.s.observeLoss(left)
	c.s.finished(c)
}

func (c *claim) isLost() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

// renew notes an extension of the lease that was asked for at sent.
func (c *claim) renew(sent time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renewed = sent
}

// overdue tells whether the lease is surely over by this process's clock: the server's began later.
func (c *claim) overdue(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Sub(c.renewed) >= c.s.cfg.Lease
}

// checkpoint applies effects without an ack, again under the same token while the failure may pass.
func (c *claim) checkpoint(ctx context.Context, member string, effects []script.Effect) (code int, err error) {
	token := c.s.tokens.take()
	err = again(ctx, func(ctx context.Context) (err error) {
		code, err = c.s.scripts.Checkpoint(ctx, c.s.rdb, c.s.keys, token.String(), c.cid, member, effects)
		return err
	})
	c.s.tokens.give(token, err)
	return code, err
}

// claims are those that this process holds.
type claims struct {
	mu   sync.Mutex
	held map[string]*claim
}

func (s *claims) add(c *claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = make(map[string]*claim)
	}
	s.held[c.cid] = c
}

func (s *claims) remove(c *claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, c.cid)
}

func (s *claims) all() []*claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*claim, 0, len(s.held))
	for _, c := range s.held {
		out = append(out, c)
	}
	return out
}
