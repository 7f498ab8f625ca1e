package main

import (
	"io"
	"log/slog"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"github.com/zqueue/zqueue/examples/quickstart/internal/events"
	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// OrderEvent is what travels through the queue. Sender and handler share it; its name is stored with each message.
var OrderEvent = zq.NewKind[events.Event]("order.event")

const (
	maxAttempts = 5
	lease       = 5 * time.Second // if this program is killed, the next one has its events back after that
)

// streams are the program's input and outputs.
type streams struct {
	in       io.Reader
	out, log io.Writer
}

// application is what the program consists of. Each part is a constructor that names what it needs; fx starts a part
// after those that it needs, and stops it before them.
func application(o options, std streams, b *books) fx.Option {
	queue := `name:"` + o.queue + `"` // of the producer and the inspector that zqfx.Queue provides
	return fx.Options(
		// Needs all the rest. First, so that nothing is opened if something is missing: fx invokes what modules have,
		// in their order, and then its own.
		fx.Module("story", fx.Invoke(func(*story) {})),
		zqfx.Module(), // with the *redis.Client of newServer
		zqfx.Queue(o.queue, zqfx.Ordered(), zqfx.Concurrency(16), zqfx.MaxAttempts(maxAttempts), zqfx.Lease(lease)),
		zqfx.Handle(o.queue, OrderEvent, newShop),
		zqfx.Chain(chain(o, b)),
		fx.Supply(o, std),
		fx.Provide(
			newLogger, newServer, newInput, newRates, newStory,
			fx.Annotate(b.attach, fx.ParamTags(queue)),
			fx.Annotate(newSender, fx.ParamTags(queue)),
			fx.Annotate(newOperator, fx.ParamTags(queue)),
		),
		fx.WithLogger(quiet),
	)
}

// newLogger logs only trouble, such as a Redis that does not answer; the rest is for the log of a service.
func newLogger(std streams) *slog.Logger {
	return slog.New(slog.NewTextHandler(std.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// quiet keeps what fx says for who debugs. Its errors come out of Start and Stop as well.
func quiet(log *slog.Logger) fxevent.Logger {
	l := &fxevent.SlogLogger{Logger: log}
	l.UseLogLevel(slog.LevelDebug)
	l.UseErrorLevel(slog.LevelDebug)
	return l
}
