package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/zqueue/zqueue/examples/quickstart/internal/events"
)

const (
	flakyCount   = 12
	flakyRetries = 2
)

// markFlaky lets the payment gateway time out for some payments and refunds, spread over the export.
func markFlaky(history []events.Event) {
	var money []int
	for i, e := range history {
		if e.Kind == events.Paid || e.Kind == events.Refunded {
			money = append(money, i)
		}
	}
	for n := range flakyCount {
		history[money[(2*n+1)*len(money)/(2*flakyCount)]].GatewayTimeouts = flakyRetries
	}
}

// markPoison books one payment in a currency that does not exist (XXX is ISO 4217 for "none"), in the middle of
// the longest history of all customers: what follows it must go on.
func markPoison(history []events.Event) {
	count := make(map[string]int)
	longest := history[0].Customer
	for _, e := range history {
		count[e.Customer]++
		if count[e.Customer] > count[longest] {
			longest = e.Customer
		}
	}
	for i := range history {
		e := &history[i]
		if e.Customer == longest && e.Sequence > count[longest]/2 && e.Kind == events.Paid && e.GatewayTimeouts == 0 {
			e.Amount.Currency = "XXX"
			return
		}
	}
}

func encode(history []events.Event) ([]string, error) {
	lines := make([]string, len(history))
	for i, e := range history {
		if err := e.Validate(); err != nil {
			return nil, fmt.Errorf("event %s: %w", e.ID(), err)
		}
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false) // an exporter that is not a web page writes & as it is
		if err := enc.Encode(e); err != nil {
			return nil, fmt.Errorf("event %s: %w", e.ID(), err)
		}
		lines[i] = strings.TrimSuffix(buf.String(), "\n")
	}
	return lines, nil
}

// retryPages repeats 40 lines, as an exporter does that lost the reply: three pages sent twice, and single
// lines that come once more some time later.
func retryPages(rng *rand.Rand, lines []string) []string {
	for i, size := range []int{14, 11, 9} {
		at := (i + 1) * len(lines) / 4
		page := slices.Clone(lines[at-size : at])
		lines = slices.Insert(lines, at, page...)
	}
	for range 6 {
		from := rng.IntN(len(lines) - 400)
		lines = slices.Insert(lines, from+20+rng.IntN(300), lines[from])
	}
	return lines
}

// damage puts six broken lines in. The first three are attempts to write an event whose good line follows;
// the others came from the cash register and were never events, so no sequence of a customer has a gap.
func damage(rng *rand.Rand, lines []string) []string {
	at := func(seventh int) int { return seventh*len(lines)/7 + rng.IntN(50) }
	put := func(at int, line string) { lines = slices.Insert(lines, at, line) }

	cut := at(1)
	put(cut, lines[cut][:len(lines[cut])*2/3])
	text := at(2)
	put(text, sequenceAsText(lines[text]))
	old := at(3)
	for !strings.Contains(lines[old], "Müller") {
		old++
	}
	put(old, latin1(lines[old]))
	put(at(4), `{"order_id":"POS-20714","sequence":1,"kind":"placed",`+
		`"amount":{"minor":1990,"currency":"EUR"},"at":"2025-11-29T16:03:51+01:00"}`) // a guest
	put(at(5), `{"order_id":"POS-20698","customer":"Paul Hall","sequence":1,"kind":"returned",`+
		`"amount":{"minor":3995,"currency":"GBP"},"at":"2025-12-01T11:20:07+01:00"}`)
	put(at(6), "POS-20741;Weber, Karin;7;paid;49.90;EUR;02.12.2025 11:42")
	return lines
}

// latin1 writes the line as an old till does, one byte a letter.
func latin1(line string) string {
	var b strings.Builder
	for _, r := range line {
		b.WriteByte(byte(r))
	}
	return b.String()
}

func sequenceAsText(line string) string {
	head, rest, _ := strings.Cut(line, `"sequence":`)
	number, rest, _ := strings.Cut(rest, ",")
	return head + `"sequence":"` + number + `",` + rest
}
