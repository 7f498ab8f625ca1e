package integration_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/zqueue/zqueue/middleware/retry"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// order is the payload of the application on trial: something to be paid for once, however often it is sent.
type order struct {
	Number int  `json:"number"`
	Hold   bool `json:"hold,omitempty"` // the first process is at it until it is told to stop
}

var orderPlaced = zq.NewKind[order]("order.placed")

// business is the order's idempotency key, which all of its messages share.
func (o order) business() string { return fmt.Sprint("order-", o.Number) }

// appAttempts is how many runs a message of the application has.
const appAttempts = 5

// orderLot is what becomes of an order: so many runs fail, and the one after them pays for it or is its last.
type orderLot struct {
	failures int
	dies     string // the dead letter's reason; "" for an order that is paid for
}

// lotOf draws an order's lot. The seed and the number decide alone, so every process knows it.
func lotOf(seed uint64, number int) orderLot {
	r := rand.New(rand.NewPCG(seed, uint64(number)))
	if r.IntN(100) == 0 {
		return []orderLot{
			{dies: "refused"}, {failures: 2, dies: "refused"}, {dies: retry.ReasonPermanent},
			{failures: appAttempts - 1, dies: zq.ReasonAttempts},
		}[r.IntN(4)]
	}
	return orderLot{failures: []int{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 3}[r.IntN(20)]}
}

// last is the number of the run that ends it.
func (l orderLot) last() int { return l.failures + 1 }

var errPayment = errors.New("the payment did not go through")

// fails fails a run that may be repeated, each in another way.
func (l orderLot) fails(seed uint64, number, attempt int) error {
	switch rand.New(rand.NewPCG(seed^uint64(attempt), uint64(number))).IntN(4) {
	case 0:
		panic("the payment broke")
	case 1:
		return zq.RetryAfter(time.Millisecond, errPayment)
	default:
		return fmt.Errorf("order %d: %w", number, errPayment)
	}
}

// death is what the last run of an order that dies returns.
func (l orderLot) death() error {
	switch l.dies {
	case retry.ReasonPermanent:
		return backoff.Permanent(errPayment)
	case zq.ReasonAttempts:
		return errPayment
	}
	return zq.Dead(l.dies, errPayment)
}
