package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// openRedis never repeats the URL as it was given: it may hold a password.
func openRedis(address string, out io.Writer) (rdb *redis.Client, closeAll func(), err error) {
	if address == "" {
		embedded, err := zqtest.StartEmbedded()
		if err != nil {
			return nil, nil, err
		}
		fmt.Fprintln(out, "redis: embedded in this program, so all is lost when it exits; -redis URL uses a real one")
		return embedded.Client(), embedded.Close, nil
	}
	options, err := redis.ParseURL(address)
	if err != nil {
		return nil, nil, errors.New("-redis is no URL such as redis://user:password@host:6379/0")
	}
	rdb = redis.NewClient(options)
	return rdb, func() { _ = rdb.Close() }, nil
}

// work runs the application until its payments are settled. It gives the metrics page, and the trace to show.
func work(
	ctx context.Context, t *telemetry, rdb *redis.Client, o options, out, log io.Writer,
) (page string, shown trace.TraceID, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return "", shown, err
	}
	defer func() { _ = listener.Close() }() // the application's, unless that fails to start
	logger := slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	c := customer{tracer: t.traces.Tracer("example.com/checkout"), out: out}
	//nolint:contextcheck // building does no I/O
	app := fx.New(application(t, rdb, listener, logger), fx.Populate(&c.payments, &c.producers))
	starting, cancel := context.WithTimeout(ctx, app.StartTimeout())
	defer cancel()
	if err := app.Start(starting); err != nil {
		return "", shown, err
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), app.StopTimeout())
		defer cancel()
		err = errors.Join(err, app.Stop(stopping))
	}()
	url := "http://" + listener.Addr().String() + "/metrics"
	fmt.Fprintf(out, "metrics: %s\n", url)
	if shown, err = c.payAll(ctx); err != nil {
		return "", shown, err
	}
	if err := c.settled(ctx); err != nil {
		return "", shown, err
	}
	if page, err = scrape(ctx, url); err == nil && o.stay {
		fmt.Fprintln(out, "staying until Ctrl-C")
		select {
		case <-ctx.Done():
		case s := <-app.Wait():
			if s.ExitCode != 0 { // else it was the signal
				err = fmt.Errorf("the application ended with exit code %d", s.ExitCode)
			}
		}
	}
	return page, shown, err
}

// customer pays.
type customer struct {
	payments  *zqfx.SenderOf[Payment]
	producers *zqfx.Producers
	tracer    trace.Tracer
	out       io.Writer
}

// payAll sends payments that end in each of the ways there are, and gives the trace of the one that is tried twice.
func (c *customer) payAll(ctx context.Context) (shown trace.TraceID, err error) {
	for _, job := range []struct {
		id      string
		payment Payment
		delay   time.Duration
		what    string
	}{
		{"p-1", Payment{Order: "o-1"}, 0, "is charged"},
		{"p-1", Payment{Order: "o-1"}, 0, "is a duplicate, and adds nothing"},
		{"p-2", Payment{Order: "o-1"}, 0, "is for an order that is paid, and is skipped"},
		{"p-3", Payment{Order: "o-3", Timeouts: 1}, 0, "fails and is tried again"},
		{"p-4", Payment{Order: "o-4", Expired: true}, 0, "becomes a dead letter"},
		{"p-5", Payment{Order: "o-5"}, 50 * time.Millisecond, "is charged later"},
	} {
		ctx, span := c.tracer.Start(ctx, "checkout")
		if job.payment.Timeouts > 0 {
			shown = span.SpanContext().TraceID()
		}
		_, err := c.payments.Send(ctx, job.payment, zq.WithID(job.id), zq.WithDelay(job.delay))
		span.End()
		if err != nil {
			return shown, err
		}
		fmt.Fprintf(c.out, "payment %s %s\n", job.id, job.what)
	}
	return shown, nil
}

// glance is how often the queues are looked at.
const glance = 20 * time.Millisecond

// settled waits until nothing is left to do: first the payments, for they send invoices.
func (c *customer) settled(ctx context.Context) error {
	again := time.NewTicker(glance)
	defer again.Stop()
	for _, queue := range []string{payments, invoices} {
		inspector, err := c.producers.Inspector(queue)
		if err != nil {
			return err
		}
		for {
			depth, err := inspector.Depth(ctx)
			if err != nil {
				return err
			}
			if depth.Unfinished() == 0 {
				break
			}
			select {
			case <-again.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	return nil
}
