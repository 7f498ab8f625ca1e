package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/zqueue/zqueue/examples/quickstart/internal/events"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// unknownCurrency is the reason of the dead letters that the shop makes, for operators to filter by.
const unknownCurrency = "unknown_currency"

var errGateway = errors.New("the payment gateway timed out")

// shop books order events. It is safe for concurrent use.
type shop struct {
	rates *rates
	books *books
}

func newShop(r *rates, b *books) *shop { return &shop{rates: r, books: b} }

// Handle is the handler: what it returns decides what becomes of the event. For one customer it runs an event
// only when the one before has its outcome. It may run more than once for an event, after a failure or a crash.
func (s *shop) Handle(_ context.Context, d *zq.Delivery, e events.Event) error {
	s.books.tally.Started(e, d.Attempt)
	switch {
	case !s.rates.trade(e.Amount):
		// It would fail the same way each time, so it is a dead letter at once, until an operator has a look.
		s.books.tally.Failed(e)
		return zq.Dead(unknownCurrency, fmt.Errorf("no exchange rate for %s", e.Amount))
	case d.Attempt <= e.GatewayTimeouts:
		// Any other error is for the chain: again later, while the customer's later events wait; or, after the
		// last attempt, a dead letter.
		s.books.tally.Failed(e)
		return errGateway
	}
	s.books.done(e)
	return nil
}
