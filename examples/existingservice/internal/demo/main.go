// Package demo runs the service as a program: it places an order and prints what happened.
package demo

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
)

// Main is the main of each variant. It exits with 0 when the story came to its end, whether or not it is a good one.
func Main(service Service) { os.Exit(Run(service, os.Args[1:], os.Stdout, os.Stderr)) }

// Run is Main without the process around it.
func Run(service Service, args []string, out, log io.Writer) int {
	flags := flag.NewFlagSet("existingservice", flag.ContinueOnError)
	flags.SetOutput(log)
	address := flags.String("redis", "", "a Redis 7.0 or newer, as redis://user:password@host:6379/0; embedded if empty")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	story, err := Tell(ctx, service, *address, out, logger)
	if err != nil {
		fmt.Fprintln(log, "existingservice:", err)
		return 1
	}
	story.Print(out)
	return 0
}
