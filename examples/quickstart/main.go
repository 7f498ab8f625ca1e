// Command quickstart works off a shop's export of order events, each customer's in the order of the file,
// through payments that fail at first and one that cannot be booked at all:
//
//	go run ./examples/quickstart [-redis URL] [-file orders.jsonl|-] [-queue NAME]
//
// Read story.go first: it is what a program that uses zqueue looks like. shop.go is the handler, sender.go the
// producer, letters.go what an operator does with dead letters.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit statuses.
const (
	statusGood        = 0
	statusBad         = 1   // an event was lost, doubled, refused or out of order, or the program failed
	statusUsage       = 2   // the command line makes no sense
	statusInterrupted = 130 // stopped half way, as shells say it
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is main without the process around it.
func run(args []string, stdin io.Reader, out, log io.Writer) int {
	o, err := parseOptions(args, log)
	if err != nil {
		return usageStatus(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for anything
	status, err := quickstart(ctx, o, stdin, out, log)
	if err != nil {
		fmt.Fprintln(log, "quickstart:", err)
	}
	return status
}

// quickstart opens what the story needs, and closes it afterwards.
func quickstart(ctx context.Context, o options, stdin io.Reader, out, log io.Writer) (int, error) {
	in, err := openInput(o.file, stdin)
	if err != nil {
		return statusBad, err
	}
	defer in.close()
	server, err := openServer(o)
	if err != nil {
		return statusBad, err
	}
	defer server.close()
	s, err := newStory(server, o.queue, in, out, log)
	if err != nil {
		return statusUsage, err // nothing but the queue's name can be wrong
	}
	fmt.Fprintln(out, "redis:", server.name)
	fmt.Fprintln(out, "input:", in.name)
	return s.tell(ctx)
}
