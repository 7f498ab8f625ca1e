package zqfxtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zqfxtest"
)

// Order is the payload, Placed and Paid are its kinds.
type Order struct{ ID string }

var (
	Placed = zq.NewKind[Order]("order.placed")
	Paid   = zq.NewKind[Order]("order.paid")
)

// Till is what the handler depends on.
type Till struct{ open bool }

var errClosed = errors.New("the till is closed")

// Charge is the handler's constructor: it charges an order, and tells the warehouse.
func Charge(till *Till, warehouse *zqfx.SenderOf[Order]) func(context.Context, *zq.Delivery, Order) error {
	return func(ctx context.Context, _ *zq.Delivery, o Order) error {
		if !till.open {
			return errClosed
		}
		_, err := warehouse.Send(ctx, o)
		return err
	}
}

// shop is the application under test, as its main function has it.
func shop() fx.Option {
	return fx.Options(
		zqfx.Module(),
		zqfx.Queue("orders", zqfx.Ordered()),
		zqfx.Handle("orders", Placed, Charge),
		zqfx.Sender("warehouse", Paid),
		fx.Supply(&Till{}),
	)
}

// One message at a time: what the handler returned, what becomes of the message, and what was sent on.
func ExampleWorkOne() {
	t, end := newT() // in a test, its t
	defer end()

	var till *Till
	app := zqfxtest.New(t, shop(), fx.Populate(&till))
	for _, id := range []string{"o-1", "o-2"} {
		_, err := Placed.Send(t.Context(), app.Producer("orders"), Order{ID: id}, zq.WithID(id))
		if err != nil {
			t.Fatal(err)
		}
	}

	ran := zqfxtest.WorkOne(t, app, "orders")
	fmt.Println(ran.ID, ran.Action, errors.Is(ran.Err, errClosed))

	till.open = true
	ran = zqfxtest.WorkOne(t, app, "orders")
	fmt.Println(ran.ID, ran.Action, ran.Err)

	for _, e := range zqfxtest.RequireEnqueued(t, app, "warehouse", Paid) {
		fmt.Println("the warehouse is told of", e.Payload.ID)
	}
	// Output:
	// o-1 retry true
	// o-2 ack <nil>
	// the warehouse is told of o-2
}

// All messages: the application runs as in production, and the test waits until its work is done.
func ExampleApp_Drain() {
	t, end := newT() // in a test, its t
	defer end()

	app := zqfxtest.New(t, shop(), fx.Decorate(func(*Till) *Till { return &Till{open: true} })).RequireStart()
	for _, id := range []string{"o-1", "o-2", "o-3"} {
		if _, err := Placed.Send(t.Context(), app.Producer("orders"), Order{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := app.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	told := zqfxtest.RequireEnqueued(t, app, "warehouse", Paid)
	fmt.Println("the warehouse is told of", len(told), "orders")
	// Output: the warehouse is told of 3 orders
}

// Time passes when the test says so.
func ExampleApp_Advance() {
	t, end := newT() // in a test, its t
	defer end()

	done := make(chan string, 1)
	remind := func(_ context.Context, _ *zq.Delivery, o Order) error {
		done <- o.ID
		return nil
	}
	app := zqfxtest.New(t, zqfx.Module(), zqfx.HandleFunc("reminders", Placed, remind)).RequireStart()
	_, err := Placed.Send(t.Context(), app.Producer("reminders"), Order{ID: "o-1"}, zq.WithDelay(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	app.Advance(24 * time.Hour)
	fmt.Println("reminded of", <-done)
	// Output: reminded of o-1
}

// A forgotten dependency shows in a test that needs no Redis.
func ExampleValidate() {
	t, end := newT() // in a test, its t
	defer end()

	zqfxtest.Validate(t, shop())
	fmt.Println("valid")
	// Output: valid
}

// exampleT is a test's t where there is no test.
type exampleT struct {
	testing.TB
	ctx      context.Context //nolint:containedctx // as testing.T has one
	cleanups []func()
}

func newT() (t *exampleT, end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	t = &exampleT{ctx: ctx}
	return t, func() {
		cancel()
		for i := len(t.cleanups) - 1; i >= 0; i-- {
			t.cleanups[i]()
		}
	}
}

// Context ends before the clean-ups.
func (t *exampleT) Context() context.Context { return t.ctx }

// Cleanup is called in the end, the last first.
func (t *exampleT) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

// Helper does nothing.
func (t *exampleT) Helper() {}

// Logf drops what fx logs.
func (t *exampleT) Logf(string, ...any) {}

// Errorf says what failed, and ends the example.
func (t *exampleT) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// FailNow ends the example.
func (t *exampleT) FailNow() { panic("failed") }

// Fatal says what failed, and ends the example.
func (t *exampleT) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// Fatalf says what failed, and ends the example.
func (t *exampleT) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
