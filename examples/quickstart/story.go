package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/zqueue/zqueue/examples/quickstart/internal/events"
	"github.com/zqueue/zqueue/examples/quickstart/internal/progress"
	"github.com/zqueue/zqueue/examples/quickstart/internal/report"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// OrderEvent is what travels through the queue. Sender and handler share it; its name is stored with each message.
var OrderEvent = zq.NewKind[events.Event]("order.event")

const (
	maxAttempts = 5
	retryDelay  = 50 * time.Millisecond // a real shop would wait longer
	lease       = 5 * time.Second       // if this program is killed, the next one has its events back after that
)

// story is one run of the program.
type story struct {
	server server
	queue  string
	in     input
	out    io.Writer
	log    io.Writer

	producer  *zq.Producer
	consumer  *zq.Consumer
	inspector *zq.Inspector

	shop      *shop
	tally     *report.Tally      // counts, and proves the order from the history
	bar       *progress.Progress // moves when a line has its outcome
	malformed []string           // the first of them
}

func newStory(server server, queue string, in input, out, log io.Writer) (*story, error) {
	s := &story{server: server, queue: queue, in: in, out: out, log: log, tally: report.New(nil)}
	s.shop = newShop(s.tally, func() { s.bar.Add(1) })
	var err error
	if s.producer, err = zq.NewProducer(server.rdb, queue); err != nil {
		return nil, err
	}
	if s.inspector, err = zq.NewInspector(server.rdb, queue); err != nil {
		return nil, err
	}
	s.consumer, err = zq.NewOrderedConsumer(server.rdb, queue, OrderEvent.Handle(s.shop.handle), zq.OrderedConfig{
		Concurrency: 16,
		MaxAttempts: maxAttempts,
		RetryDelay:  func(*zq.Delivery, error) time.Duration { return retryDelay },
		Lease:       lease,
		// Only trouble, such as a Redis that does not answer; the rest is for the log of a service.
		Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	return s, err
}

// tell runs the story and returns the exit status.
func (s *story) tell(ctx context.Context) (int, error) {
	if err := s.begin(ctx); err != nil {
		return statusBad, err
	}
	if err := s.consumer.Start(ctx); err != nil {
		return statusBad, err
	}
	err := s.work(ctx)
	s.bar.Finish()
	// Handlers at work finish and their outcomes are recorded; events that were claimed but not started go back
	// to their places. A service calls consumer.Run(ctx), which does the same once ctx ends.
	last := context.WithoutCancel(ctx)
	closed := errors.Join(s.consumer.Stop(last), s.producer.Close(last))
	interrupted := ctx.Err() != nil
	if interrupted {
		err = nil // whatever failed because of that
	}
	if err := errors.Join(err, closed); err != nil {
		return statusBad, err
	}
	return s.end(last, interrupted)
}

// begin looks whether an earlier run was stopped half way.
func (s *story) begin(ctx context.Context) error {
	depth, err := s.inspector.Depth(ctx)
	if err != nil {
		return err
	}
	left := unfinished(depth)
	if left > 0 {
		fmt.Fprintf(s.out, "queue: %s, with %d events that an earlier run has left\n", s.queue, left)
	}
	total := s.in.lines
	if total > 0 {
		total += left
	}
	s.bar = progress.New(s.log, "events", total)
	return nil
}

// work sends the events while the handlers work, and looks after the dead letters in the end.
func (s *story) work(ctx context.Context) error {
	if err := s.send(ctx); err != nil {
		return err
	}
	if err := s.settled(ctx); err != nil {
		return err
	}
	s.bar.Finish()
	if err := s.table(); err != nil {
		return err
	}
	return s.deadLetters(ctx)
}

// settled waits until nothing is left to run. Only the queue can tell: handlers do not see what waits, nor
// whether their last outcome is recorded.
func (s *story) settled(ctx context.Context) error {
	again := time.NewTicker(25 * time.Millisecond)
	defer again.Stop()
	for {
		depth, err := s.inspector.Depth(ctx)
		if err != nil || unfinished(depth) == 0 {
			return err
		}
		select {
		case <-again.C:
		case <-s.consumer.Done():
			return errors.New("the consumer stopped by itself")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// unfinished counts the messages that are neither done nor dead.
func unfinished(d zq.Depth) int { return int(d.Pending + d.Delayed + d.Running + d.Suspect) }
