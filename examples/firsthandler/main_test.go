package main

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
	"github.com/zqueue/zqueue/zqfx/zqfxtest"
)

const limit = 30 * time.Second

func TestMain(m *testing.M) {
	zqtest.RegisterChild("firsthandler", func() {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM) // fx hears it only once the start is over
		main()
	})
	os.Exit(zqtest.Main(m))
}

func TestShips(t *testing.T) {
	t.Parallel()
	p := zqtest.Child(t, "firsthandler", "ZQ_REDIS_URL="+zqtest.Redis(t).URL())
	p.Expect("shipped o-1", limit)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	running := true
	for range int(limit / (50 * time.Millisecond)) {
		if !running {
			break
		}
		p.Terminate()
		select {
		case _, running = <-p.Lines():
		case <-again.C:
		}
	}
	if code := p.Wait(limit); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

func TestWiring(t *testing.T) {
	t.Parallel()
	zqfxtest.Validate(t, zqfx.Module(), zqfx.Handle("orders", Placed, NewShipping), zqfx.Sender("orders", Placed),
		fx.Provide(NewWarehouse), fx.Invoke(PlaceAtStart))
}
