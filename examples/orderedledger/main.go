// Command orderedledger keeps the books of a few accounts whose postings come from three branches, numbered, in any
// order. Each account's postings are applied in the order of their numbers, each once; one that may not be applied
// halts its account until an operator has looked at it:
//
//	go run ./examples/orderedledger [-redis URL] [-queue NAME]
//
// Read ledger.go first: it is the handler. branches.go sends, operator.go mends what halted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware/sequence"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main without the process around it.
func run(args []string, out, log io.Writer) int {
	flags := flag.NewFlagSet("orderedledger", flag.ContinueOnError)
	flags.SetOutput(log)
	address := flags.String("redis", "", "a Redis 7.0 or newer, as redis://user:password@host:6379/0; embedded if empty")
	queue := flags.String("queue", "example-ledger", "the queue; the ledger lies in its namespace")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rdb, closeRedis, err := openRedis(*address)
	if err == nil {
		defer closeRedis()
		err = keepBooks(ctx, rdb, *queue, out, log)
	}
	if err != nil {
		fmt.Fprintln(log, "orderedledger:", err)
		return 1
	}
	return 0
}

// openRedis never repeats the URL as it was given: it may hold a password.
func openRedis(address string) (rdb *redis.Client, closeAll func(), err error) {
	if address == "" {
		embedded, err := zqtest.StartEmbedded()
		if err != nil {
			return nil, nil, err
		}
		return embedded.Client(), embedded.Close, nil
	}
	options, err := redis.ParseURL(address)
	if err != nil {
		return nil, nil, errors.New("-redis is no URL such as redis://user:password@host:6379/0")
	}
	rdb = redis.NewClient(options)
	return rdb, func() { _ = rdb.Close() }, nil
}

// keepBooks sends all postings, lets the handlers work, mends what halts, and compares the books.
func keepBooks(ctx context.Context, rdb *redis.Client, queue string, out, log io.Writer) error {
	books := &ledger{rdb: rdb, queue: queue}
	gate, err := sequence.New(rdb, queue)
	if err != nil {
		return err
	}
	consumer, err := zq.NewOrderedConsumer(rdb, queue, gate(Posted.Handle(books.apply)), zq.OrderedConfig{
		Concurrency: 8,
		OnDeath:     zq.HaltKey, // what comes after a posting that could not be applied must wait
		Lease:       5 * time.Second,
		Logger:      slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	inspector, err := zq.NewInspector(rdb, queue)
	if err != nil {
		return err
	}
	if err := consumer.Start(ctx); err != nil {
		return err
	}
	defer func() { _ = consumer.Stop(context.WithoutCancel(ctx)) }() // its outcome is in the books
	want, err := sendAll(ctx, rdb, queue)
	if err != nil {
		return err
	}
	op := operator{inspector: inspector, books: books, out: out, done: consumer.Done()}
	if err := op.watch(ctx); err != nil {
		return err
	}
	return books.compare(ctx, want, out, inspector)
}
