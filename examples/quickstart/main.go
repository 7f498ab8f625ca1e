// Command quickstart works off a shop's export of order events, each customer's in the order of the file,
// through payments that fail at first and one that cannot be booked at all:
//
//	go run ./examples/quickstart [-redis URL] [-file orders.jsonl|-] [-queue NAME]
//
// Read app.go first: it is what a program that uses zqueue looks like. shop.go is the handler and chain.go what
// stands around it, sender.go the producer, letters.go what an operator does with dead letters; story.go puts them
// to work.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"go.uber.org/fx"
)

// Exit statuses.
const (
	statusGood        = 0
	statusBad         = 1   // an event was lost, doubled, refused or out of order, or the program failed
	statusUsage       = 2   // the command line makes no sense
	statusInterrupted = 130 // stopped half way, as shells say it
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is main without the process around it. A service would end in fx.New(…).Run().
func run(args []string, stdin io.Reader, out, log io.Writer) int {
	o, err := parseOptions(args, log)
	if err != nil {
		return usageStatus(err)
	}
	b := newBooks(o.queue, out, log)
	served := serve(fx.New(application(o, streams{stdin, out, log}, b)))
	status, err := b.outcome()
	if err = errors.Join(err, served); err != nil {
		fmt.Fprintln(log, "quickstart:", err)
		return statusBad
	}
	return status
}

// serve does what fx's Run does, but leaves the exit status to the caller: start, wait for the end of the story or
// a signal, stop.
func serve(app *fx.App) error {
	over := app.Wait()
	starting, cancel := context.WithTimeout(context.Background(), app.StartTimeout())
	defer cancel()
	err := app.Start(starting)
	if err == nil {
		if end := <-over; end.ExitCode != 0 { // a consumer has ended by itself, and zqfx has logged why
			err = fmt.Errorf("the application gave up, with code %d", end.ExitCode)
		}
	}
	signal.Reset(os.Interrupt, syscall.SIGTERM) // a second Ctrl-C does not wait for anything
	stopping, cancel := context.WithTimeout(context.Background(), app.StopTimeout())
	defer cancel()
	return errors.Join(err, app.Stop(stopping)) // also after a start that failed: it ends what Wait has begun
}
