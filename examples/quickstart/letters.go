package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/zqueue/zqueue/examples/quickstart/internal/events"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// maxShown bounds the dead letters that are shown in full.
const maxShown = 3

// operator looks at the dead letters, mends what killed them, and sends them back to work.
type operator struct {
	inspector *zq.Inspector
	rates     *rates
	books     *books
	out       io.Writer
}

func newOperator(i *zq.Inspector, r *rates, b *books, std streams) *operator {
	return &operator{inspector: i, rates: r, books: b, out: std.out}
}

func (o *operator) deadLetters(ctx context.Context) error {
	letters, err := o.inspector.DeadLetters(ctx, time.Time{}, zq.MaxPage)
	if err != nil || len(letters) == 0 {
		return err
	}
	for i := range letters[:min(len(letters), maxShown)] {
		o.show(&letters[i])
	}
	if more := len(letters) - maxShown; more > 0 {
		fmt.Fprintf(o.out, "and %d more\n", more)
	}
	mended, err := o.mend(letters)
	if err != nil || len(mended) == 0 {
		return err
	}
	return o.replay(ctx, mended)
}

func (o *operator) show(l *zq.DeadLetter) {
	fmt.Fprintf(o.out, "dead letter %q\n", l.Message.ID)
	fmt.Fprintf(o.out, "  key       %q\n", l.Message.Key)
	fmt.Fprintf(o.out, "  body      %s\n", l.Message.Body)
	fmt.Fprintf(o.out, "  reason    %s\n", l.Reason)
	fmt.Fprintf(o.out, "  error     %q\n", l.Error)
	fmt.Fprintf(o.out, "  attempts  %d\n", l.Attempts)
	fmt.Fprintf(o.out, "  enqueued  %s\n", l.EnqueuedAt.Format(time.DateTime))
	fmt.Fprintf(o.out, "  died      %s\n", l.DiedAt.Format(time.DateTime))
}

// mend adds the missing currencies to the exchange table and gives the events that this helps. What died for
// another reason would die again.
func (o *operator) mend(letters []zq.DeadLetter) ([]events.Event, error) {
	var mended []events.Event
	var added []string
	for i := range letters {
		if letters[i].Reason != unknownCurrency {
			continue
		}
		e, err := OrderEvent.Open(letters[i].Message)
		if err != nil {
			return nil, err
		}
		mended = append(mended, e)
		if !o.rates.trade(e.Amount) {
			o.rates.add(e.Amount.Currency)
			added = append(added, e.Amount.Currency)
		}
	}
	if len(mended) > 0 {
		fmt.Fprintf(o.out, "an operator adds %s to the exchange table\n", strings.Join(added, ", "))
	}
	return mended, nil
}

// replay sends events back to work: with fresh attempts, and each at its old place among its customer's.
func (o *operator) replay(ctx context.Context, mended []events.Event) error {
	for _, e := range mended {
		o.books.tally.Replayed(e) // before the handler can start
		if err := o.inspector.Replay(ctx, e.ID()); err != nil {
			return err
		}
	}
	if err := settled(ctx, o.inspector); err != nil {
		return err
	}
	sum := o.books.tally.Summary()
	fmt.Fprintf(o.out, "replayed %d: %d processed, %d dead again\n", sum.Replayed, sum.ReplayedDone, sum.ReplayedDead)
	return nil
}
