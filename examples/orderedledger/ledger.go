package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/effect"
)

// Names of the ledger in the queue's namespace: a hash of balances, and a list of what was applied to each account.
const balances = "balances"

func applied(account string) string { return "applied:" + account }

// overdrawn is the reason of the dead letters that the ledger makes.
const overdrawn = "overdrawn"

// ledger applies postings. The balances change in the same atomic step as the ack, so each posting counts once,
// whatever crashes.
type ledger struct {
	rdb   *redis.Client
	queue string

	mu      sync.Mutex
	granted map[string]bool // accounts that an operator has allowed to be overdrawn
}

// apply is the handler.
func (l *ledger) apply(ctx context.Context, d *zq.Delivery, p Posting) error {
	// Nobody else changes this account meanwhile: its key is held for this posting.
	balance, err := l.rdb.HGet(ctx, zq.EffectKey(l.queue, balances), p.Account).Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	if balance+p.Cents < 0 && !l.mayOverdraw(p.Account) {
		return zq.Dead(overdrawn, fmt.Errorf("%s has %d cents, posting %d takes %d", p.Account, balance, p.Number, -p.Cents))
	}
	return d.Effect(
		effect.HIncrBy(balances, p.Account, p.Cents),
		effect.RPush(applied(p.Account), strconv.FormatInt(p.Number, 10)),
	)
}

func (l *ledger) mayOverdraw(account string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.granted[account]
}

func (l *ledger) grant(account string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.granted == nil {
		l.granted = map[string]bool{}
	}
	l.granted[account] = true
}

// compare prints the books and fails where an account has another balance than the sum of its postings, or had them
// in another order than that of their numbers.
func (l *ledger) compare(ctx context.Context, want map[string]int64, out io.Writer, in *zq.Inspector) error {
	var faults []error
	for _, account := range slices.Sorted(maps.Keys(want)) {
		balance, err := l.rdb.HGet(ctx, zq.EffectKey(l.queue, balances), account).Int64()
		if err != nil {
			return err
		}
		numbers, err := l.rdb.LRange(ctx, zq.EffectKey(l.queue, applied(account)), 0, -1).Result()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s  %10.2f  %d postings\n", account, float64(balance)/100, len(numbers))
		if balance != want[account] || !inOrder(numbers) {
			faults = append(faults, fmt.Errorf("%s: balance %d, want %d; applied %s", account, balance, want[account],
				strings.Join(numbers, " ")))
		}
	}
	report, err := in.Verify(ctx, 0)
	if len(report.Problems) > 0 {
		faults = append(faults, fmt.Errorf("queue: %s", strings.Join(report.Problems, "; ")))
	}
	faults = append(faults, err)
	if err := errors.Join(faults...); err != nil {
		return err
	}
	fmt.Fprintln(out, "every posting was applied once, in the order of its account")
	return nil
}

func inOrder(numbers []string) bool {
	for i, n := range numbers {
		if n != strconv.Itoa(i+1) {
			return false
		}
	}
	return len(numbers) == postings
}

// How often the operator looks.
const glance = 20 * time.Millisecond
