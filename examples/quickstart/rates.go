package main

import (
	"sync"

	"github.com/zqueue/zqueue/examples/quickstart/internal/events"
)

// rates is the exchange table, which the shop and its operator share. It is safe for concurrent use.
type rates struct {
	mu    sync.Mutex
	added map[string]bool // currencies, by an operator
}

func newRates() *rates { return &rates{added: make(map[string]bool)} }

// trade tells whether the table has the currency.
func (r *rates) trade(m events.Money) bool {
	if _, known := m.Digits(); known {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.added[m.Currency]
}

// add is what the operator does about an unknown currency.
func (r *rates) add(currency string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.added[currency] = true
}
