package main

import (
	"context"
	"errors"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// Payment is to be charged. What its card will do is known here, for this is a demo.
type Payment struct {
	Order    string `json:"order"`
	Timeouts int    `json:"timeouts,omitempty"` // how often the gateway does not answer
	Expired  bool   `json:"expired,omitempty"`
}

// Invoice is to be mailed.
type Invoice struct {
	Order string `json:"order"`
}

// The jobs.
var (
	PaymentDue = zq.NewKind[Payment]("payment.due")
	InvoiceDue = zq.NewKind[Invoice]("invoice.due")
)

var (
	errTimeout = errors.New("the payment gateway timed out")
	errExpired = errors.New("the card has expired")
)

// newCharge makes the handler of payments. The invoice is sent with the run's context, so it is in the same trace.
func newCharge(outbox *zqfx.SenderOf[Invoice]) func(context.Context, *zq.Delivery, Payment) error {
	return func(ctx context.Context, d *zq.Delivery, p Payment) error {
		switch {
		case p.Expired:
			return zq.Dead("card_expired", errExpired)
		case d.Attempt <= p.Timeouts:
			return errTimeout // it is tried again later
		}
		_, err := outbox.Send(ctx, Invoice{p.Order}, zq.WithID("invoice-"+p.Order))
		return err
	}
}

func mailInvoice(context.Context, *zq.Delivery, Invoice) error { return nil }
