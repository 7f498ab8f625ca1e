package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware/sequence"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// Posting is one change of an account's balance, in cents.
type Posting struct {
	Account string `json:"account"`
	Number  int64  `json:"number"` // 1, 2, 3 and so on within the account
	Cents   int64  `json:"cents"`
}

// ID makes a posting that is sent twice a duplicate.
func (p Posting) ID() string { return fmt.Sprintf("%s/%d", p.Account, p.Number) }

// Posted is what travels through the queue.
var Posted = zq.NewKind[Posting]("ledger.posted")

const (
	branches = 3
	accounts = 5
	postings = 20 // an account
)

// overdraft is the posting that its account does not cover.
var overdraft = Posting{Account: "account-3", Number: 8, Cents: -1_000_000}

// allPostings are each account's, in order.
func allPostings() []Posting {
	var all []Posting
	for a := 1; a <= accounts; a++ {
		for n := int64(1); n <= postings; n++ {
			p := Posting{Account: fmt.Sprint("account-", a), Number: n, Cents: 100 * n}
			if n%3 == 0 {
				p.Cents = -50 * n
			}
			if p.Account == overdraft.Account && n == overdraft.Number {
				p = overdraft
			}
			all = append(all, p)
		}
	}
	return all
}

// sendAll lets the branches send at once, each its share in an order of its own, and gives the balances to expect.
func sendAll(ctx context.Context, rdb *redis.Client, queue string) (map[string]int64, error) {
	producer, err := zq.NewProducer(rdb, queue)
	if err != nil {
		return nil, err
	}
	want, shares := map[string]int64{}, [branches][]Posting{}
	for i, p := range allPostings() {
		want[p.Account] += p.Cents
		shares[i%branches] = append(shares[i%branches], p)
	}
	var (
		sending sync.WaitGroup
		failed  [branches]error
	)
	for b, share := range shares {
		rand.Shuffle(len(share), func(i, j int) { share[i], share[j] = share[j], share[i] })
		sending.Go(func() { failed[b] = send(ctx, producer, share) })
	}
	sending.Wait()
	return want, errors.Join(errors.Join(failed[:]...), producer.Close(ctx))
}

func send(ctx context.Context, producer *zq.Producer, share []Posting) error {
	for _, p := range share {
		// The key gives each account one posting at a time, the number their order.
		if _, err := Posted.Send(ctx, producer, p, zq.WithID(p.ID()), zq.WithKey(p.Account), sequence.Number(p.Number)); err != nil {
			return err
		}
	}
	return nil
}
