package main

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zqueue/zqueue/examples/quickstart/internal/events"
)

const shipped = "../../orders.jsonl"

func TestShippedFileIsWhatGenerateWrites(t *testing.T) {
	t.Parallel()
	var have bytes.Buffer
	if err := export(&have); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have.Bytes(), want) {
		t.Error("orders.jsonl differs: go run ./examples/quickstart/internal/generate > examples/quickstart/orders.jsonl")
	}
	if size := len(want); size > 600<<10 {
		t.Errorf("%d bytes is too much to ship", size)
	}
}

// shop is what a reader finds in the shipped file.
type shop struct {
	distinct   map[string]events.Event
	byCustomer map[string][]events.Event // distinct, in file order
	duplicates int
	malformed  []string
}

func readShipped(t *testing.T) shop {
	t.Helper()
	file, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	s := shop{distinct: make(map[string]events.Event), byCustomer: make(map[string][]events.Event)}
	for e, err := range events.Read(bytes.NewReader(file)) {
		var bad *events.MalformedError
		switch first, known := s.distinct[e.ID()]; {
		case errors.As(err, &bad):
			s.malformed = append(s.malformed, bad.Reason)
		case err != nil:
			t.Fatal(err)
		case known:
			s.duplicates++
			if !first.At.Equal(e.At) || first.Amount != e.Amount || first.Customer != e.Customer {
				t.Errorf("%s comes twice with different content", e.ID())
			}
		default:
			s.distinct[e.ID()] = e
			s.byCustomer[e.Customer] = append(s.byCustomer[e.Customer], e)
		}
	}
	return s
}

func TestShippedFileHasWhatTheStoryNeeds(t *testing.T) {
	t.Parallel()
	s := readShipped(t)
	if n := len(s.distinct); n < 2000 {
		t.Errorf("%d events, want at least 2,000", n)
	}
	if n := len(s.byCustomer); n != customerCount {
		t.Errorf("%d customers, want %d", n, customerCount)
	}
	if s.duplicates != 40 {
		t.Errorf("%d duplicates, want 40", s.duplicates)
	}
	for customer, history := range s.byCustomer {
		for i, e := range history {
			if e.Sequence != i+1 {
				t.Errorf("customer %q: event %d has sequence %d", customer, i+1, e.Sequence)
			}
		}
	}
	for _, name := range odd {
		if len(s.byCustomer[name]) == 0 {
			t.Errorf("customer %q buys nothing", name)
		}
	}
	want := []string{
		"not JSON: unexpected end of JSON input",
		"field sequence: want a whole number",
		"not UTF-8",
		"field customer is missing",
		`field kind: unknown kind "returned"`,
		"not JSON: invalid character 'P'",
	}
	if !slices.EqualFunc(s.malformed, want, strings.HasPrefix) {
		t.Errorf("malformed lines: %q", s.malformed)
	}
}

func TestShippedFileHasOnePoisonAndTwelveFlaky(t *testing.T) {
	t.Parallel()
	s := readShipped(t)
	flaky, poison, free := 0, 0, 0
	currencies := make(map[string]bool)
	for _, e := range s.distinct {
		currencies[e.Amount.Currency] = true
		if e.Amount.Minor == 0 {
			free++
		}
		if e.GatewayTimeouts > 0 {
			flaky++
			if e.GatewayTimeouts != 2 || (e.Kind != events.Paid && e.Kind != events.Refunded) {
				t.Errorf("%+v: want two timeouts of a payment or refund", e)
			}
		}
		if _, known := e.Amount.Digits(); !known {
			poison++
			if n := len(s.byCustomer[e.Customer]); e.Sequence < n/4 || e.Sequence > n*3/4 || e.GatewayTimeouts > 0 {
				t.Errorf("poison at %d of %d events of its customer, %d timeouts", e.Sequence, n, e.GatewayTimeouts)
			}
		}
	}
	if flaky != 12 || poison != 1 {
		t.Errorf("%d flaky events and %d poison, want 12 and 1", flaky, poison)
	}
	if free == 0 || len(currencies) < 6 {
		t.Errorf("%d free orders in %d currencies", free, len(currencies))
	}
}

func TestShippedFileHasPartialAndEarlyRefunds(t *testing.T) {
	t.Parallel()
	early, partial := 0, 0
	for _, history := range readShipped(t).byCustomer {
		steps := make(map[string][]events.Event)
		for _, e := range history {
			steps[e.OrderID] = append(steps[e.OrderID], e)
		}
		for _, order := range steps {
			last := order[len(order)-1]
			if last.Kind != events.Refunded {
				continue
			}
			if last.Amount.Minor < order[0].Amount.Minor {
				partial++
			}
			if !slices.ContainsFunc(order, func(e events.Event) bool { return e.Kind == events.Shipped }) {
				early++
			}
		}
	}
	if early == 0 || partial == 0 {
		t.Errorf("%d refunds before shipping, %d in part", early, partial)
	}
}
