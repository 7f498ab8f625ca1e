// Command plainredis works off messages that no zqueue producer has put in, but a plain ZADD, as redis-cli or a
// program in any language can send it:
//
//	go run ./examples/plainredis [-redis URL] [-queue NAME]
//
// The member is the message, the score its place: lower ones run first, floats included, equal ones in the order of
// their bytes. Handlers find the member in d.ID and d.Body, and the score in d.Score.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// mail is a message as redis-cli takes it.
type mail struct{ score, member string }

// mails are in no order, and their names are as people have them.
var mails = []mail{
	{"10", "mail:alice"},
	{"1.5", "mail:carol"},
	{"10", "mail:Zoë Müller, with spaces"},
	{"0.1", "mail:dave"},
	{"1.5", "mail:bea"},
	{"-3", "mail:on-call"},
	{"1e3", "mail:newsletter"},
	{"10", "mail:王小明"},
	{"0.30000000000000004", `mail:"quoted" \n 'twice'`},
	{"2", "mail:bob"},
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main without the process around it.
func run(args []string, out, log io.Writer) int {
	flags := flag.NewFlagSet("plainredis", flag.ContinueOnError)
	flags.SetOutput(log)
	address := flags.String("redis", "", "a Redis 7.0 or newer, as redis://user:password@host:6379/0; embedded if empty")
	queue := flags.String("queue", "example-emails", "the queue; all that is in it will be worked off")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := plainRedis(ctx, *address, *queue, out); err != nil {
		fmt.Fprintln(log, "plainredis:", err)
		return 1
	}
	return 0
}

func plainRedis(ctx context.Context, address, queue string, out io.Writer) error {
	server, err := openServer(address)
	if err != nil {
		return err
	}
	defer server.close()
	inspector, err := zq.NewInspector(server.rdb, queue)
	if err != nil {
		return err // a queue with such a name cannot be; nothing was put in
	}
	fmt.Fprintln(out, "redis:", server.name)
	// All keys of a queue share its name in braces; ready is what can be claimed now.
	if err := put(ctx, server, "zq:{"+queue+"}:ready", out); err != nil {
		return err
	}
	if err := workOff(ctx, server.rdb, queue, out); err != nil {
		return err
	}
	return verify(ctx, inspector, queue, out)
}

// workOff prints what the consumer hands out, until all mails have come.
func workOff(ctx context.Context, rdb *redis.Client, queue string, out io.Writer) error {
	working, done := context.WithCancel(ctx)
	defer done()
	waiting := make(map[string]bool)
	for _, m := range mails {
		waiting[m.member] = true
	}
	handler := zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		fmt.Fprintf(out, "%20s  %q\n", strconv.FormatFloat(d.Score, 'g', -1, 64), d.Body)
		delete(waiting, d.ID)
		if len(waiting) == 0 {
			done()
		}
		return nil
	})
	// One handler at a time prints them in order. A small ClaimAhead: what comes later with a lower score is not
	// stuck behind many that are claimed already.
	consumer, err := zq.NewConsumer(rdb, queue, handler, zq.ConsumerConfig{Concurrency: 1, ClaimAhead: 4})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "worked off, lowest score first:\n")
	if err := consumer.Run(working); err != nil {
		return err
	}
	return context.Cause(ctx) // not nil if it was interrupted
}

func verify(ctx context.Context, inspector *zq.Inspector, queue string, out io.Writer) error {
	report, err := inspector.Verify(ctx, 0)
	if err != nil {
		return err
	}
	depth, err := inspector.Depth(ctx)
	if err != nil {
		return err
	}
	if len(report.Problems) > 0 || depth.Ready+depth.Running > 0 {
		return fmt.Errorf("queue %s: %d ready, %d running, problems %q", queue, depth.Ready, depth.Running, report.Problems)
	}
	fmt.Fprintf(out, "queue %s verifies clean and is empty\n", queue)
	return nil
}
