package main

import (
	"context"
	"time"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// story is one run of the program, from the first line to the last dead letter, beside the consumers.
type story struct {
	books    *books
	sender   *sender
	operator *operator
	shutdown fx.Shutdowner

	cancel context.CancelFunc
	over   chan struct{} // closed when nothing of it runs any more
}

// newStory needs the worker, so that the story begins when the consumers have started, and ends before they drain.
func newStory(lc fx.Lifecycle, sd fx.Shutdowner, b *books, s *sender, o *operator, _ *zqfx.Worker) *story {
	st := &story{books: b, sender: s, operator: o, shutdown: sd, over: make(chan struct{})}
	lc.Append(fx.StartStopHook(st.start, st.stop))
	return st
}

// start returns at once: fx ends the context of a start with the start.
func (s *story) start(starting context.Context) {
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(starting))
	s.books.begin()
	go s.tell(ctx)
}

// stop interrupts the story if it has not ended, and waits for it.
func (s *story) stop(ctx context.Context) error {
	s.cancel()
	select {
	case <-s.over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tell works, and asks fx to stop the application.
func (s *story) tell(ctx context.Context) {
	defer close(s.over)
	err := s.work(ctx)
	s.books.bar.Finish()
	if ctx.Err() != nil {
		return // an interrupt; whatever failed, failed because of that
	}
	s.books.finish(err)
	_ = s.shutdown.Shutdown() // unless somebody has asked before
}

// work sends the events while the handlers work, and looks after the dead letters in the end.
func (s *story) work(ctx context.Context) error {
	if err := s.sender.send(ctx); err != nil {
		return err
	}
	if err := settled(ctx, s.operator.inspector); err != nil {
		return err
	}
	s.books.bar.Finish()
	if err := s.books.table(); err != nil {
		return err
	}
	return s.operator.deadLetters(ctx)
}

// settled waits until nothing is left to run. Only the queue can tell: handlers do not see what waits, nor
// whether their last outcome is recorded.
func settled(ctx context.Context, queue *zq.Inspector) error {
	again := time.NewTicker(25 * time.Millisecond)
	defer again.Stop()
	for {
		depth, err := queue.Depth(ctx)
		if err != nil || depth.Unfinished() == 0 {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
