package zqfx_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// A child has to be known before TestMain looks for it.
var _ = registerProgram()

func registerProgram() bool {
	zqtest.RegisterChild("program", runProgram)
	return true
}

const programEnv = "ZQFX_PROGRAM"

// program is an application in a process of its own, as a main function has it.
type program struct {
	Addr, Queue string
	Lease       time.Duration
	Shutdown    time.Duration
	HoldStart   bool   // the start does not end
	OnFatal     string // as configured
}

// start runs the program.
func (p program) start(t *testing.T) *zqtest.Process {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return zqtest.Child(t, "program", programEnv+"="+string(text))
}

// runProgram is the program's main function. It tells of its phases in lines.
func runProgram() {
	var p program
	if err := json.Unmarshal([]byte(os.Getenv(programEnv)), &p); err != nil {
		say("spec: %v", err)
		os.Exit(2)
	}
	type database struct{}
	app := fx.New(fx.NopLogger, client(redis.NewClient(&redis.Options{Addr: p.Addr})),
		fx.Decorate(func(c zqfx.Config) zqfx.Config {
			c.ShutdownTimeout, c.OnFatal = p.Shutdown, p.OnFatal
			return c
		}),
		zqfx.Module(), zqfx.Queue(p.Queue, zqfx.Lease(p.Lease)),
		fx.Provide(func(lc fx.Lifecycle) *database {
			lc.Append(fx.StopHook(func() { say("database closed") }))
			return &database{}
		}),
		zqfx.Handle(p.Queue, Placed, func(*database) typedRun { return obey }),
		fx.Invoke(func(lc fx.Lifecycle) {
			lc.Append(fx.Hook{OnStart: p.up, OnStop: func(context.Context) error { say("stopping"); return nil }})
		}))
	if !p.HoldStart {
		_ = app.Done() // fx hears signals from here on; else only some time after the last hook of the start
	}
	app.Run()
	say("over")
}

// up is the last hook of the start.
func (p program) up(ctx context.Context) error {
	if p.HoldStart {
		say("starting")
		<-ctx.Done()
		return ctx.Err()
	}
	say("up")
	return nil
}

// obey does what the message's id asks for.
func obey(ctx context.Context, _ *zq.Delivery, o OrderPlaced) error {
	say("at %s", o.ID)
	switch {
	case strings.HasPrefix(o.ID, "heed"):
		<-ctx.Done()
		return context.Cause(ctx)
	case strings.HasPrefix(o.ID, "deaf"):
		select {}
	}
	return nil
}

// say writes a line in one piece.
func say(format string, args ...any) {
	_, _ = os.Stdout.WriteString(fmt.Sprintf(format, args...) + "\n") // the parent may be gone
}
