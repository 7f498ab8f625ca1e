package zq

import (
	"fmt"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// Observer is told what a consumer does; its fields may be nil. Its functions are called on the consumer's own
// goroutines: they must be quick and safe for concurrent use. A panic in one is caught and logged once.
type Observer struct {
	// Claimed is called after each call that claimed something.
	Claimed func(Claimed)
	// Settled is called after each call that recorded outcomes, failed ones included.
	Settled func(Settled)
	// Decided is called once for each run, before its outcome is recorded, with what the core makes of it. An ack
	// whose effects do not hold is decided a second time.
	Decided func(*Delivery, Decision)
	// Lost is called when a lease is lost.
	Lost func(Lost)
	// Failed is called after each call to Redis that failed: claim, settle, heartbeat, upkeep or wait.
	Failed func(call string, err error)
}

// Claimed is one call that claimed something.
type Claimed struct {
	Queue string
	// Messages are as the handlers will get them. An observer neither changes nor keeps them.
	Messages []*Delivery
	// Began and Took are by this process's clock, Server is when they were claimed by the server's.
	Began  time.Time
	Took   time.Duration
	Server time.Time
}

// Settled is one call that recorded outcomes.
type Settled struct {
	Queue    string
	Messages int
	// Traces are what their runs left with Delivery.Leave, MaxSettledTraces at most.
	Traces []string
	Began  time.Time
	Took   time.Duration
	Err    error
}

// MaxSettledTraces is how many traces Settled names.
const MaxSettledTraces = 128

// Decision is what the core makes of a run.
type Decision struct {
	Action Action
	// Reason is a dead letter's; Delay the pause of a retry or a postponement.
	Reason string
	Delay  time.Duration
	// Err is what came out of the handler, Cause why its context ended; nil if it did not.
	Err, Cause error
	// Ran is how long the handler ran; 0 if it never did.
	Ran time.Duration
}

// Lost is a lease that was lost, with the messages that were not recorded.
type Lost struct {
	Queue    string
	Messages int
}

// observers calls all of them, each safe from the others' panics.
type observers struct {
	list []Observer
	log  *journal
}

func (o *observers) each(call func(Observer)) {
	for _, one := range o.list {
		o.guarded(one, call)
	}
}

func (o *observers) guarded(one Observer, call func(Observer)) {
	defer func() {
		if v := recover(); v != nil {
			o.log.once("an observer panics", fmt.Errorf("panic: %v", v))
		}
	}()
	call(one)
}

func (s *session) observeClaim(c *claim, got script.Claimed, sent time.Time, took time.Duration) {
	if len(s.seen.list) == 0 {
		return
	}
	e := Claimed{Queue: s.queue, Began: sent, Took: took, Server: c.claimedAt}
	for i := range got.Messages {
		d, _ := newDelivery(s.queue, &got.Messages[i], c) // of an unreadable one, what its member tells
		e.Messages = append(e.Messages, d)
	}
	s.seen.each(func(o Observer) {
		if o.Claimed != nil {
			o.Claimed(e)
		}
	})
}

func (s *session) observeSettle(batch []outcome, began time.Time, err error) {
	if len(s.seen.list) == 0 {
		return
	}
	e := Settled{Queue: s.queue, Messages: len(batch), Began: began, Took: time.Since(began), Err: err}
	for i := range batch {
		if batch[i].trace != "" && len(e.Traces) < MaxSettledTraces {
			e.Traces = append(e.Traces, batch[i].trace)
		}
	}
	s.seen.each(func(o Observer) {
		if o.Settled != nil {
			o.Settled(e)
		}
	})
}

var actions = map[verdict]Action{
	ack: ActionAck, retry: ActionRetry, wait: ActionPostpone, aside: ActionPostpone, release: ActionRelease,
	bury: ActionDead, drop: ActionDrop,
}

func (s *session) observeDecision(d *Delivery, dec decision, cause error, ran time.Duration) {
	if len(s.seen.list) == 0 {
		return
	}
	e := Decision{Action: actions[dec.verdict], Reason: dec.reason, Delay: dec.delay, Err: dec.err, Cause: cause, Ran: ran}
	s.seen.each(func(o Observer) {
		if o.Decided != nil {
			o.Decided(d, e)
		}
	})
}

func (s *session) observeLoss(messages int) {
	s.seen.each(func(o Observer) {
		if o.Lost != nil {
			o.Lost(Lost{Queue: s.queue, Messages: messages})
		}
	})
}

// failed counts, logs and tells of a call to Redis that failed.
func (s *session) failed(call string, err error) {
	s.count.errors.Add(1)
	s.log.trouble(call, err)
	s.seen.each(func(o Observer) {
		if o.Failed != nil {
			o.Failed(call, err)
		}
	})
}
