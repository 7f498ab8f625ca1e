// Package events reads a shop's export of order events: one JSON object a line.
package events

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of what an event may hold. Together they keep Event.ID below the 256 bytes that a message id may have.
const (
	MaxOrderID  = 128 // bytes
	MaxCustomer = 256 // bytes; the customer is the ordering key
	MaxTimeouts = 100
)

// Kind is a step in the life of an order.
type Kind string

// The steps of an order. Not every order takes all of them, nor in this sequence:
// on invoice it ships before it is paid, and some are refunded before they ship.
const (
	Placed   Kind = "placed"
	Paid     Kind = "paid"
	Packed   Kind = "packed"
	Shipped  Kind = "shipped"
	Refunded Kind = "refunded"
)

// Known reports whether k is one of the kinds above.
func (k Kind) Known() bool {
	switch k {
	case Placed, Paid, Packed, Shipped, Refunded:
		return true
	}
	return false
}

// Event is one thing that happened to an order.
type Event struct {
	OrderID  string `json:"order_id"`
	Customer string `json:"customer"`
	// Sequence counts the events of one customer from 1, in the order of the export.
	Sequence int       `json:"sequence"`
	Kind     Kind      `json:"kind"`
	Amount   Money     `json:"amount"`
	At       time.Time `json:"at"`
	// GatewayTimeouts is how often the payment gateway timed out before it answered.
	// A handler that plays the gateway fails as many attempts.
	GatewayTimeouts int `json:"gateway_timeouts,omitempty"`
}

// ID names the event for good: the same line exported again has the same id, so the queue takes it once.
// The sequence is part of it because an order can be refunded, or shipped, in two parts.
func (e Event) ID() string {
	return e.OrderID + "/" + string(e.Kind) + "/" + strconv.Itoa(e.Sequence)
}

// Validate returns the first thing that is wrong with the event, nil if it can be processed.
// An unknown currency passes: only the one who books the amount can tell which currencies it takes.
func (e Event) Validate() error {
	if err := checkText("order_id", e.OrderID, MaxOrderID); err != nil {
		return err
	}
	if err := checkText("customer", e.Customer, MaxCustomer); err != nil {
		return err
	}
	switch {
	case e.Sequence < 1:
		return fmt.Errorf("field sequence: %d is less than 1", e.Sequence)
	case !e.Kind.Known():
		return fmt.Errorf("field kind: unknown kind %q", clip(string(e.Kind), 40))
	case e.At.Year() < 1970 || e.At.Year() > 9999:
		return fmt.Errorf("field at: year %d is outside 1970 to 9999", e.At.Year())
	case e.GatewayTimeouts < 0 || e.GatewayTimeouts > MaxTimeouts:
		return fmt.Errorf("field gateway_timeouts: %d is outside 0 to %d", e.GatewayTimeouts, MaxTimeouts)
	}
	return e.Amount.validate()
}

// checkText refuses what would make two different names look alike or break the lines of a table.
// Joiners and direction marks stay: emoji and many scripts need them.
func checkText(field, s string, limit int) error {
	switch {
	case strings.TrimSpace(s) == "":
		return fmt.Errorf("field %s is empty", field)
	case len(s) > limit:
		return fmt.Errorf("field %s: %d bytes, at most %d", field, len(s), limit)
	case !utf8.ValidString(s):
		return fmt.Errorf("field %s is not UTF-8", field)
	}
	for _, r := range s {
		if unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) {
			return fmt.Errorf("field %s: control character %U", field, r)
		}
		if r == utf8.RuneError {
			// encoding/json puts it where an escape was half a character, other exporters where they lost one.
			return fmt.Errorf("field %s: replacement character %U, the name was damaged before", field, r)
		}
	}
	return nil
}

// Money is an amount in the smallest unit of its currency, never a float.
type Money struct {
	Minor    int64  `json:"minor"`
	Currency string `json:"currency"` // ISO 4217, as "EUR"
}

// Digits is the number of decimals of the currency; ok is false for a currency the shop does not trade in.
func (m Money) Digits() (digits int, ok bool) {
	switch m.Currency {
	case "EUR", "USD", "GBP", "CHF", "SEK", "PLN", "INR", "BRL":
		return 2, true
	case "JPY", "KRW":
		return 0, true
	case "KWD":
		return 3, true
	}
	return 0, false
}

// String writes the amount as people do, "129.90 EUR"; of an unknown currency it names the unit.
func (m Money) String() string {
	digits, ok := m.Digits()
	if !ok {
		return fmt.Sprintf("%d minor units of %s", m.Minor, m.Currency)
	}
	if digits == 0 {
		return fmt.Sprintf("%d %s", m.Minor, m.Currency)
	}
	unit := int64(100)
	if digits == 3 {
		unit = 1000
	}
	sign, minor := "", m.Minor
	if minor < 0 {
		sign, minor = "-", -minor
	}
	return fmt.Sprintf("%s%d.%0*d %s", sign, minor/unit, digits, minor%unit, m.Currency)
}

func (m Money) validate() error {
	if m.Minor < 0 {
		return errors.New("field amount.minor is negative")
	}
	if len(m.Currency) != 3 || strings.Trim(m.Currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return fmt.Errorf("field amount.currency: %q is not three capital letters", clip(m.Currency, 12))
	}
	return nil
}
