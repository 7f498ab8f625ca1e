// Package shop is the business: it takes orders and mails receipts. It knows nothing of queues.
package shop

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
)

// Order is what a customer wants.
type Order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Item     string `json:"item"`
}

// maxOrder bounds the body of a request, in bytes.
const maxOrder = 4 << 10

// Shop takes orders. It is safe for concurrent use.
type Shop struct {
	receipt func(context.Context, Order) error

	mu     sync.Mutex
	orders map[string]Order
}

// New makes a shop. receipt is called for each order that was taken, and again when a customer repeats one.
func New(receipt func(context.Context, Order) error) *Shop {
	return &Shop{receipt: receipt, orders: map[string]Order{}}
}

// Handler serves POST /orders: 201 when the order is kept and its receipt is seen to, 502 when the receipt is not.
func (s *Shop) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", s.place)
	return mux
}

func (s *Shop) place(w http.ResponseWriter, r *http.Request) {
	var o Order
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrder)).Decode(&o)
	if err != nil || o.ID == "" || o.Customer == "" {
		http.Error(w, "an order has an id and a customer", http.StatusBadRequest)
		return
	}
	s.keep(o)
	if err := s.receipt(r.Context(), o); err != nil {
		http.Error(w, "order "+o.ID+" is taken, but there is no receipt: "+err.Error(), http.StatusBadGateway)
		return
	}
	w.WriteHeader(http.StatusCreated)
}

// keep stands for a database.
func (s *Shop) keep(o Order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders[o.ID] = o
}
