// Command observability shows what a service with jobs tells about itself: it runs a handful of payments that end in
// each of the ways that a job can end, prints one trace as a tree and the metrics page, and exits.
//
//	go run . [-redis URL] [-listen HOST:PORT] [-stay]
//
// Spans go to the collector at OTEL_EXPORTER_OTLP_ENDPOINT, or without one as JSON to stderr. Read telemetry.go first,
// then app.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// options are what the command line says.
type options struct {
	redis, listen string
	stay          bool
}

// run is main without the process around it.
func run(args []string, out, log io.Writer) int {
	var o options
	flags := flag.NewFlagSet("observability", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.StringVar(&o.redis, "redis", "", "a Redis 7.0 or newer, as redis://user:password@host:6379/0; embedded if empty")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "where the metrics page is; port 0 is a free one")
	flags.BoolVar(&o.stay, "stay", false, "go on until Ctrl-C, so that Prometheus can scrape")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := tell(ctx, o, out, log); err != nil {
		fmt.Fprintln(log, "observability:", err)
		return 1
	}
	return 0
}

// flushTime bounds the last words to a collector: one that is gone holds no service up.
const flushTime = 5 * time.Second

// tell runs the application, and telemetry around it: what the drain does is told as well.
func tell(ctx context.Context, o options, out, log io.Writer) error {
	rdb, closeRedis, err := openRedis(o.redis, out)
	if err != nil {
		return err
	}
	defer closeRedis()
	t, err := newTelemetry(ctx, log)
	if err != nil {
		return err
	}
	page, shown, err := work(ctx, t, rdb, o, out, log)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	flushed := t.shutdown(last)
	if err != nil {
		return errors.Join(err, flushed)
	}
	fmt.Fprintf(out, "\nthe trace of the payment that was tried twice:\n")
	printTrace(out, t.recorder.Ended(), shown)
	fmt.Fprintf(out, "\nthe metrics page, without buckets:\n%s", page)
	return flushed
}
