package zqfx_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"

	"github.com/zqueue/zqueue/middleware"
	"github.com/zqueue/zqueue/middleware/retry"
	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// Mail is a payload; SendMail names it in Redis.
type Mail struct{ To string }

// SendMail is what producers and handlers share.
var SendMail = zq.NewKind[Mail]("mail.send")

// Mails to one address go out in their order, sixteen at once.
func Example() {
	server, stop := embedded()
	defer stop()
	sent := make(chan struct{})
	app := fx.New(
		fx.NopLogger,
		fx.Supply(server.Client()), // or ZQ_REDIS_URL
		zqfx.Module(),
		zqfx.Queue("mail", zqfx.Ordered(), zqfx.Concurrency(16)),
		zqfx.HandleFunc("mail", SendMail, func(_ context.Context, _ *zq.Delivery, m Mail) error {
			defer close(sent)
			fmt.Println("mail to", m.To)
			return nil // acked; an error is tried again later, and the next mail to this address waits
		}),
		zqfx.Sender("mail", SendMail),
		fx.Invoke(func(lc fx.Lifecycle, s *zqfx.SenderOf[Mail]) {
			lc.Append(fx.StartHook(func(ctx context.Context) error {
				_, err := s.Send(ctx, Mail{To: "ada@example.org"}, zq.WithKey("ada@example.org"))
				return err
			}))
		}),
	)
	run(app, sent) // a program calls app.Run()
	// Output: mail to ada@example.org
}

// Postman is a dependency of the handler. It is closed after the last handler has returned.
type Postman struct{ done chan struct{} }

// NewPostman makes one that fx closes.
func NewPostman(lc fx.Lifecycle) *Postman {
	lc.Append(fx.StopHook(func() { fmt.Fprintln(os.Stdout, "postman closed") }))
	return &Postman{done: make(chan struct{})}
}

// MailHandler is a handler with a method.
type MailHandler struct{ postman *Postman }

// NewMailHandler is its constructor. What it needs comes from the graph, and fx.ValidateApp finds what is missing.
func NewMailHandler(p *Postman) *MailHandler { return &MailHandler{p} }

// Handle may run more than once for a message.
func (h *MailHandler) Handle(_ context.Context, d *zq.Delivery, m Mail) error {
	defer close(h.postman.done)
	fmt.Fprintln(os.Stdout, "mail to", m.To, "in attempt", d.Attempt)
	return nil
}

func ExampleHandle() {
	server, stop := embedded()
	defer stop()
	var p *zqfx.Producers
	var postman *Postman
	app := fx.New(
		fx.NopLogger,
		fx.Supply(server.Client()),
		fx.Provide(NewPostman),
		zqfx.Module(),
		zqfx.Handle("mail", SendMail, NewMailHandler),
		fx.Populate(&p, &postman),
	)
	producer, err := p.For("mail")
	check(err)
	_, err = SendMail.Send(context.Background(), producer, Mail{To: "ada@example.org"})
	check(err)
	run(app, postman.done)
	// Output:
	// mail to ada@example.org in attempt 1
	// postman closed
}

// Billing has a Redis of its own, beside the shop's. Both have a queue of one name and payload.
func ExampleInstance() {
	server, stop := embedded()
	defer stop()
	shopRedis, billingRedis := server.Client(), server.Client(func(o *redis.Options) { o.DB = 1 })
	billing, done := zqfx.Instance("billing"), make(chan struct{})
	app := fx.New(
		fx.NopLogger,
		fx.Supply(shopRedis),
		zqfx.Module(),
		zqfx.HandleFunc("mail", SendMail, func(context.Context, *zq.Delivery, Mail) error { return nil }),

		fx.Supply(fx.Annotated{Name: "billing", Target: billingRedis}), // or ZQ_BILLING_REDIS_URL
		zqfx.Module(billing),
		zqfx.HandleFunc("mail", SendMail, func(_ context.Context, _ *zq.Delivery, m Mail) error {
			defer close(done)
			fmt.Println("an invoice to", m.To)
			return nil
		}, billing),
		zqfx.Sender("mail", SendMail, billing),
		fx.Invoke(fx.Annotate(func(lc fx.Lifecycle, s *zqfx.SenderOf[Mail]) {
			lc.Append(fx.StartHook(func(ctx context.Context) error {
				_, err := s.Send(ctx, Mail{To: "ada@example.org"})
				return err
			}))
		}, fx.ParamTags("", `name:"billing"`))),
	)
	run(app, done)
	// Output: an invoice to ada@example.org
}

// A web server only sends; another process has the handlers. It needs no Queue, for the queue is not its own.
func ExampleProducerOnly() {
	server, stop := embedded()
	defer stop()
	var s *zqfx.SenderOf[Mail]
	app := fx.New(
		fx.NopLogger,
		fx.Supply(server.Client()),
		zqfx.Module(zqfx.ProducerOnly()),
		zqfx.Sender("mail", SendMail),
		fx.Populate(&s),
	)
	check(app.Start(context.Background()))
	receipt, err := s.Send(context.Background(), Mail{To: "ada@example.org"}, zq.WithID("welcome-ada"))
	check(err)
	again, err := s.Send(context.Background(), Mail{To: "ada@example.org"}, zq.WithID("welcome-ada"))
	check(err)
	fmt.Println(receipt.ID, receipt.Duplicate, again.Duplicate)
	check(app.Stop(context.Background()))
	// Output: welcome-ada false true
}

// What a sender's user does is tested without an application.
func ExampleNewSender() {
	var stand standIn // an Enqueuer that keeps what it gets
	s := zqfx.NewSender(&stand, SendMail)
	_, err := s.Send(context.Background(), Mail{To: "ada@example.org"})
	check(err)
	fmt.Println(stand.sent[0].Kind, string(stand.sent[0].Body))
	// Output: mail.send {"To":"ada@example.org"}
}

// The standard chain with another pace of retries and a layer of one's own, inside all others.
func ExampleChain() {
	server, stop := embedded()
	defer stop()
	done := make(chan struct{})
	fast := retry.DefaultCurve()
	fast.Initial = time.Millisecond
	timed := func(next zq.Handler) zq.Handler {
		return zq.HandlerFunc(func(ctx context.Context, d *zq.Delivery) error {
			err := next.Handle(ctx, d)
			fmt.Printf("attempt %d: %v\n", d.Attempt, err)
			return err
		})
	}
	var p *zqfx.Producers
	app := fx.New(
		fx.NopLogger,
		fx.Supply(server.Client()),
		zqfx.Module(),
		zqfx.Chain(middleware.Standard(
			middleware.Retry(retry.Backoff(fast)),
			middleware.User("timed", timed),
		)),
		zqfx.HandleFunc("mail", SendMail, func(_ context.Context, d *zq.Delivery, m Mail) error {
			if d.Attempt == 1 {
				return errors.New("no answer")
			}
			close(done)
			return nil
		}),
		fx.Populate(&p),
	)
	producer, err := p.For("mail")
	check(err)
	_, err = SendMail.Send(context.Background(), producer, Mail{To: "ada@example.org"})
	check(err)
	run(app, done)
	// Output:
	// attempt 1: no answer
	// attempt 2: <nil>
}

// A queue that a newer library has written to ends its consumer. Here the application is told; by default it would
// shut down with ExitFatal.
func ExampleOnFatal() {
	server, stop := embedded()
	defer stop()
	rdb, told := server.Client(), make(chan struct{})
	app := fx.New(
		fx.NopLogger,
		fx.Supply(rdb),
		zqfx.Module(zqfx.OnFatal(zqfx.FatalFunc(func(queue string, err error) {
			defer close(told)
			fmt.Println(queue, "has ended:", errors.Is(err, zq.ErrNewerLayout))
		}))),
		zqfx.HandleFunc("mail", SendMail, func(context.Context, *zq.Delivery, Mail) error { return nil }),
		fx.Invoke(func(lc fx.Lifecycle) {
			lc.Append(fx.StartHook(func(ctx context.Context) error {
				_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error { // as the newer library does
					p.HSet(ctx, "zq:{mail}:meta", "layout", 999)
					p.ZAdd(ctx, "zq:{mail}:wake", redis.Z{Member: "w"})
					return nil
				})
				return err
			}))
		}),
	)
	check(app.Start(context.Background()))
	<-told
	_ = app.Stop(context.Background()) // it tells again why the consumer has ended
	// Output: mail has ended: true
}

// The configuration is the environment's until it is changed: by fx.Decorate field by field, or by fx.Replace with
// one from a file. Both stand beside Module.
func ExampleConfig() {
	server, stop := embedded()
	defer stop()
	var c zqfx.Config
	app := fx.New(
		fx.NopLogger,
		zqfx.Module(zqfx.ProducerOnly()),
		zqfx.Queue("mail"),
		fx.Decorate(func(c zqfx.Config) zqfx.Config {
			c.RedisURL = "redis://app:secret@" + server.Addr()
			c.ShutdownTimeout = 20 * time.Second
			c.Queues = map[string]zqfx.QueueConfig{"mail": {Concurrency: 64}}
			return c
		}),
		fx.StopTimeout(25*time.Second),
		fx.Invoke(func(decorated zqfx.Config) { c = decorated }),
	)
	check(app.Start(context.Background()))
	check(app.Stop(context.Background()))
	c.RedisURL = "redis://app:secret@redis.internal:6379/0"
	fmt.Println(strings.ReplaceAll(c.String(), " ", "\n")) // without its secrets
	// Output:
	// [redis_url=redis://***@redis.internal:6379/0
	// consume=true
	// shutdown_timeout=20s
	// shutdown_reserve=0s
	// on_fatal=
	// queues=[mail=[concurrency=64]]]
}

// A readiness probe. It is not ready before the start, nor once the stop has begun.
func ExampleHealth() {
	server, stop := embedded()
	defer stop()
	var health *zqfx.Health
	app := fx.New(
		fx.NopLogger,
		fx.Supply(server.Client()),
		zqfx.Module(),
		zqfx.HandleFunc("mail", SendMail, func(context.Context, *zq.Delivery, Mail) error { return nil }),
		fx.Populate(&health),
	)
	ready := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := health.Check(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	probe := func() {
		w := httptest.NewRecorder()
		ready.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ready", http.NoBody))
		fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
	}
	probe()
	check(app.Start(context.Background()))
	probe()
	check(app.Stop(context.Background()))
	probe()
	// Output:
	// 503 zqfx: not ready: the default instance is not started
	// 200 ready
	// 503 zqfx: not ready: the default instance is stopping
}

// embedded starts a Redis for an example.
func embedded() (server *zqtest.EmbeddedRedis, stop func()) {
	server, err := zqtest.StartEmbedded()
	check(err)
	return server, server.Close
}

// run starts an application and stops it when it is done.
func run(app *fx.App, done <-chan struct{}) {
	check(app.Start(context.Background()))
	<-done
	check(app.Stop(context.Background()))
}

// check keeps the examples to their story; a program returns the error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
