package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx"
)

// options are the command line.
type options struct {
	redis *redis.Options // nil for the embedded one
	where string         // redis, for people: without the password
	file  string         // "" for the export that ships with the example, "-" for stdin
	queue string
}

const usage = `Usage: quickstart [-redis URL] [-file orders.jsonl|-] [-queue NAME]

Works off order events, each customer's in the order of the file. The exit status is 0 when each event has one
outcome in its order, 1 when not, 2 for a bad command line, 130 when interrupted.

`

func parseOptions(args []string, log io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.Usage = func() {
		fmt.Fprint(log, usage)
		flags.PrintDefaults()
	}
	address := flags.String("redis", "", "a Redis 7.0 or newer, as redis://user:password@host:6379/0; embedded if empty")
	flags.StringVar(&o.file, "file", "", "JSON lines of order events, - for stdin; the export that ships with the example if empty")
	flags.StringVar(&o.queue, "queue", "quickstart-orders", "the queue; only one quickstart at a time should use it")
	if err := flags.Parse(args); err != nil {
		return o, err // flag has printed it
	}
	// The queue's name as zqfx would check it, before anything is opened.
	err := errors.Join(o.setRedis(*address), zqfx.Config{Queues: map[string]zqfx.QueueConfig{o.queue: {}}}.Validate())
	if flags.NArg() > 0 {
		err = fmt.Errorf("what is %q? Flags only, please", flags.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(log, "quickstart:", err)
	}
	return o, err
}

// setRedis reads the URL. Neither its errors nor anything else repeats the URL as it was given: it may hold a
// password.
func (o *options) setRedis(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err == nil {
		o.redis, err = redis.ParseURL(address)
	}
	if err != nil {
		return errors.New("-redis is no URL such as redis://user:password@host:6379/0")
	}
	u.RawQuery, u.Fragment = "", ""
	o.where = u.Redacted()
	return nil
}

func usageStatus(err error) int {
	if errors.Is(err, flag.ErrHelp) {
		return statusGood
	}
	return statusUsage
}
