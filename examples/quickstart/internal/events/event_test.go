package events

import (
	"strings"
	"testing"
	"time"
)

func valid() Event {
	return Event{
		OrderID:  "SO-1",
		Customer: "Ann",
		Sequence: 1,
		Kind:     Paid,
		Amount:   Money{Minor: 1290, Currency: "EUR"},
		At:       time.Date(2025, 11, 28, 9, 0, 0, 0, time.UTC),
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		set  func(*Event)
		want string // part of the error; empty for valid
	}{
		{"plain", func(*Event) {}, ""},
		{"free order", func(e *Event) { e.Amount.Minor = 0 }, ""},
		{"unknown currency is the handler's business", func(e *Event) { e.Amount.Currency = "XXX" }, ""},
		{"joined emoji", func(e *Event) { e.Customer = "\U0001F469\u200d\U0001F467" }, ""},
		{"right to left", func(e *Event) { e.Customer = "\u200fشركة" }, ""},
		{"longest customer", func(e *Event) { e.Customer = strings.Repeat("x", MaxCustomer) }, ""},
		{"no order", func(e *Event) { e.OrderID = "" }, "field order_id is empty"},
		{"long order", func(e *Event) { e.OrderID = strings.Repeat("9", MaxOrderID+1) }, "field order_id: 129 bytes"},
		{"no customer", func(e *Event) { e.Customer = " \u00a0 " }, "field customer is empty"},
		{"long customer", func(e *Event) { e.Customer = strings.Repeat("x", MaxCustomer+1) }, "257 bytes, at most 256"},
		{"bad UTF-8", func(e *Event) { e.Customer = "M\xfcller" }, "field customer is not UTF-8"},
		{"NUL", func(e *Event) { e.Customer = "a\x00b" }, "control character U+0000"},
		{"escape", func(e *Event) { e.Customer = "a\x1b[31m" }, "control character U+001B"},
		{"line separator", func(e *Event) { e.Customer = "a\u2028b" }, "control character U+2028"},
		{"damaged name", func(e *Event) { e.Customer = "M\uFFFDller" }, "replacement character"},
		{"sequence zero", func(e *Event) { e.Sequence = 0 }, "field sequence: 0"},
		{"negative sequence", func(e *Event) { e.Sequence = -3 }, "field sequence: -3"},
		{"no kind", func(e *Event) { e.Kind = "" }, "unknown kind"},
		{"unknown kind", func(e *Event) { e.Kind = "lost" }, `unknown kind "lost"`},
		{"kind in capitals", func(e *Event) { e.Kind = "PAID" }, `unknown kind "PAID"`},
		{"zero time", func(e *Event) { e.At = time.Time{} }, "field at: year 1"},
		{"negative amount", func(e *Event) { e.Amount.Minor = -1 }, "field amount.minor is negative"},
		{"currency in small letters", func(e *Event) { e.Amount.Currency = "eur" }, "three capital letters"},
		{"currency sign", func(e *Event) { e.Amount.Currency = "\u20ac" }, "three capital letters"},
		{"no currency", func(e *Event) { e.Amount.Currency = "" }, "three capital letters"},
		{"negative timeouts", func(e *Event) { e.GatewayTimeouts = -1 }, "field gateway_timeouts"},
		{"too many timeouts", func(e *Event) { e.GatewayTimeouts = MaxTimeouts + 1 }, "field gateway_timeouts"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := valid()
			tt.set(&e)
			err := e.Validate()
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("have %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestIDIsStableAndFitsAMessage(t *testing.T) {
	t.Parallel()
	e := valid()
	if have := e.ID(); have != "SO-1/paid/1" {
		t.Errorf("have %q", have)
	}
	e.OrderID, e.Sequence, e.Kind = strings.Repeat("9", MaxOrderID), int(^uint(0)>>1), Refunded
	if n := len(e.ID()); n > 256 {
		t.Errorf("an id of %d bytes is longer than a message id may be", n)
	}
}

func TestMoneyString(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]Money{
		"129.90 EUR":           {12990, "EUR"},
		"0.05 USD":             {5, "USD"},
		"0.00 GBP":             {0, "GBP"},
		"-1.50 CHF":            {-150, "CHF"},
		"4980 JPY":             {4980, "JPY"},
		"1.250 KWD":            {1250, "KWD"},
		"7 minor units of XXX": {7, "XXX"},
	} {
		if have := m.String(); have != want {
			t.Errorf("have %q, want %q", have, want)
		}
	}
}
