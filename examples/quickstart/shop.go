package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/zqueue/zqueue/examples/quickstart/internal/events"
	"github.com/zqueue/zqueue/examples/quickstart/internal/report"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// unknownCurrency is the reason of the dead letters that the shop makes, for operators to filter by.
const unknownCurrency = "unknown_currency"

var errGateway = errors.New("the payment gateway timed out")

// shop books order events. Its methods are safe for concurrent use.
type shop struct {
	tally    *report.Tally
	progress func() // called when an event has its outcome

	mu    sync.Mutex
	rates map[string]bool // currencies that an operator has added to the exchange table
}

func newShop(tally *report.Tally, progress func()) *shop {
	return &shop{tally: tally, progress: progress, rates: make(map[string]bool)}
}

// handle is the handler: what it returns decides what becomes of the event. For one customer it runs an event
// only when the one before has its outcome. It may run more than once for an event, after a failure or a crash.
func (s *shop) handle(_ context.Context, d *zq.Delivery, e events.Event) error {
	s.tally.Started(e, d.Attempt)
	switch {
	case !s.trades(e.Amount):
		// It would fail the same way each time, so it is a dead letter at once, until an operator has a look.
		s.tally.Dead(e, unknownCurrency)
		s.progress()
		return zq.Dead(unknownCurrency, fmt.Errorf("no exchange rate for %s", e.Amount))
	case d.Attempt <= e.GatewayTimeouts && d.Attempt >= maxAttempts:
		// This was its last attempt; the queue makes a dead letter of it.
		s.tally.Dead(e, zq.ReasonAttempts)
		s.progress()
		return errGateway
	case d.Attempt <= e.GatewayTimeouts:
		// Any other error means: again after the retry delay. The customer's later events wait for it.
		s.tally.Failed(e)
		return errGateway
	}
	s.tally.Done(e)
	s.progress()
	return nil
}

// trades tells whether the exchange table has the currency.
func (s *shop) trades(m events.Money) bool {
	if _, known := m.Digits(); known {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rates[m.Currency]
}

// addRate is what the operator does about an unknown currency.
func (s *shop) addRate(currency string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rates[currency] = true
}
