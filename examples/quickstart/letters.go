package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/zqueue/zqueue/examples/quickstart/internal/events"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// maxShown bounds the dead letters that are shown in full.
const maxShown = 3

// deadLetters plays the operator: looks at the dead letters, mends what killed them, and sends them back to work.
func (s *story) deadLetters(ctx context.Context) error {
	letters, err := s.inspector.DeadLetters(ctx, time.Time{}, zq.MaxPage)
	if err != nil || len(letters) == 0 {
		return err
	}
	for i := range letters[:min(len(letters), maxShown)] {
		s.show(&letters[i])
	}
	if more := len(letters) - maxShown; more > 0 {
		fmt.Fprintf(s.out, "and %d more\n", more)
	}
	mended, err := s.mend(letters)
	if err != nil || len(mended) == 0 {
		return err
	}
	return s.replay(ctx, mended)
}

func (s *story) show(l *zq.DeadLetter) {
	fmt.Fprintf(s.out, "dead letter %q\n", l.Message.ID)
	fmt.Fprintf(s.out, "  key       %q\n", l.Message.Key)
	fmt.Fprintf(s.out, "  body      %s\n", l.Message.Body)
	fmt.Fprintf(s.out, "  reason    %s\n", l.Reason)
	fmt.Fprintf(s.out, "  error     %q\n", l.Error)
	fmt.Fprintf(s.out, "  attempts  %d\n", l.Attempts)
	fmt.Fprintf(s.out, "  enqueued  %s\n", l.EnqueuedAt.Format(time.DateTime))
	fmt.Fprintf(s.out, "  died      %s\n", l.DiedAt.Format(time.DateTime))
}

// mend adds the missing currencies to the exchange table and gives the events that this helps. What died for
// another reason would die again.
func (s *story) mend(letters []zq.DeadLetter) ([]events.Event, error) {
	var mended []events.Event
	var added []string
	for i := range letters {
		if letters[i].Reason != unknownCurrency {
			continue
		}
		e, err := open(&letters[i])
		if err != nil {
			return nil, err
		}
		mended = append(mended, e)
		if !s.shop.trades(e.Amount) {
			s.shop.addRate(e.Amount.Currency)
			added = append(added, e.Amount.Currency)
		}
	}
	if len(mended) > 0 {
		fmt.Fprintf(s.out, "an operator adds %s to the exchange table\n", strings.Join(added, ", "))
	}
	return mended, nil
}

// replay sends events back to work: with fresh attempts, and each at its old place among its customer's.
func (s *story) replay(ctx context.Context, mended []events.Event) error {
	for _, e := range mended {
		s.tally.Replayed(e) // before the handler can start
		if err := s.inspector.Replay(ctx, e.ID()); err != nil {
			return err
		}
	}
	if err := s.settled(ctx); err != nil {
		return err
	}
	sum := s.tally.Summary()
	fmt.Fprintf(s.out, "replayed %d: %d processed, %d dead again\n", sum.Replayed, sum.ReplayedDone, sum.ReplayedDead)
	return nil
}

// open reads the event in a dead letter.
func open(l *zq.DeadLetter) (events.Event, error) {
	return OrderEvent.Decode(&zq.Delivery{ID: l.Message.ID, ContentType: l.Message.ContentType, Body: l.Message.Body})
}
