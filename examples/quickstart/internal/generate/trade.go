package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/zqueue/zqueue/examples/quickstart/internal/events"
)

const (
	orderCount = 575
	firstOrder = 104_211
	// exportDays is how long the shop traded before the export; later steps of late orders are not in it.
	exportDays = 14
)

// start is the Monday before a Black Friday, in the shop's zone.
var start = time.Date(2025, time.November, 24, 0, 0, 0, 0, time.FixedZone("CET", 3600))

// lives are the ways an order can go, by weight. "part" refunds a part of the amount.
var lives = []struct {
	weight int
	steps  string
}{
	{58, "placed paid packed shipped"},
	{9, "placed paid packed shipped refunded"},
	{6, "placed paid refunded"},                      // cancelled before it shipped
	{5, "placed paid packed refunded"},               // …or in the warehouse
	{5, "placed"},                                    // never paid
	{7, "placed packed shipped paid"},                // on invoice
	{4, "placed paid packed shipped part"},           // one item sent back
	{3, "placed paid packed shipped part part"},      // two, in two parcels
	{3, "placed paid packed shipped packed shipped"}, // two shipments
}

// trade plays the shop and returns its events as an export has them: by time, customers interleaved.
func trade(rng *rand.Rand, buyers []customer) []events.Event {
	var all []events.Event
	times := openingTimes(rng)
	for i, buyer := range pickBuyers(rng, buyers) {
		all = append(all, order(rng, firstOrder+i, times[i], buyer)...)
	}
	slices.SortStableFunc(all, func(a, b events.Event) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.OrderID, b.OrderID))
	})
	end := start.AddDate(0, 0, exportDays)
	all = slices.DeleteFunc(all, func(e events.Event) bool { return e.At.After(end) })
	sequence := make(map[string]int)
	for i := range all {
		sequence[all[i].Customer]++
		all[i].Sequence = sequence[all[i].Customer]
	}
	return all
}

// pickBuyers says whose each order is: everybody has one, the rest goes by weight.
func pickBuyers(rng *rand.Rand, buyers []customer) []customer {
	picked := slices.Clone(buyers)
	weights := make([]int, len(buyers))
	for i, b := range buyers {
		weights[i] = b.orders
	}
	for len(picked) < orderCount {
		picked = append(picked, buyers[pick(rng, weights)])
	}
	rng.Shuffle(len(picked), func(i, j int) { picked[i], picked[j] = picked[j], picked[i] })
	return picked
}

// openingTimes returns when each order is placed, rising. The last days have none, so that most orders end in time.
func openingTimes(rng *rand.Rand) []time.Time {
	days := []int{3, 3, 4, 5, 12, 6, 4, 8, 4, 3, 3} // Black Friday is the fifth, Cyber Monday the eighth
	hours := []int{2, 1, 1, 0, 0, 1, 2, 4, 6, 7, 7, 6, 8, 7, 6, 6, 7, 8, 9, 11, 13, 12, 8, 4}
	times := make([]time.Time, orderCount)
	for i := range times {
		hour := 24*pick(rng, days) + pick(rng, hours)
		times[i] = start.Add(time.Duration(3600*hour+rng.IntN(3600)) * time.Second)
	}
	slices.SortFunc(times, time.Time.Compare)
	return times
}

// pick returns an index, each as often as its weight says.
func pick(rng *rand.Rand, weights []int) int {
	total := 0
	for _, w := range weights {
		total += w
	}
	at, i := rng.IntN(total), 0
	for at >= weights[i] {
		at -= weights[i]
		i++
	}
	return i
}

// order returns the events of one order, placed at the given time.
func order(rng *rand.Rand, number int, at time.Time, buyer customer) []events.Event {
	amount := price(rng, buyer.currency)
	var all []events.Event
	weights := make([]int, len(lives))
	for i, l := range lives {
		weights[i] = l.weight
	}
	for _, step := range strings.Fields(lives[pick(rng, weights)].steps) {
		e := events.Event{
			OrderID:  fmt.Sprintf("SO-%d", number),
			Customer: buyer.name,
			Kind:     events.Kind(step),
			Amount:   amount,
			At:       at,
		}
		if step == "part" {
			e.Kind, e.Amount.Minor = events.Refunded, amount.Minor/3
		}
		all = append(all, e)
		// From a second (a card) to a day and a half (a parcel); products of two are small more often than not.
		at = at.Add(time.Duration(1+rng.IntN(360)*rng.IntN(360)) * time.Second)
	}
	return all
}

// price is a shop's price: 4.90 to some thousands, more often low, ending in 0, 5 or 9; sometimes a voucher pays all.
func price(rng *rand.Rand, currency string) events.Money {
	if rng.IntN(45) == 0 {
		return events.Money{Currency: currency}
	}
	whole := int64(4 + rng.IntN(60)*rng.IntN(60)*(1+rng.IntN(3)*rng.IntN(2))/8)
	cents := []int64{90, 95, 99, 0, 50}[rng.IntN(5)]
	switch currency {
	case "JPY":
		return events.Money{Minor: whole * 150, Currency: currency}
	case "KWD":
		return events.Money{Minor: whole*1000 + cents*10, Currency: currency}
	}
	return events.Money{Minor: whole*100 + cents, Currency: currency}
}
