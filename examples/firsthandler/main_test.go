package main

import (
	"os"
	"testing"
	"time"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
	"github.com/zqueue/zqueue/zqfx/zqfxtest"
)

func TestMain(m *testing.M) {
	zqtest.RegisterChild("firsthandler", main)
	os.Exit(zqtest.Main(m))
}

func TestShips(t *testing.T) {
	t.Parallel()
	p := zqtest.Child(t, "firsthandler", "ZQ_REDIS_URL="+zqtest.Redis(t).URL())
	p.Expect("shipped o-1", 30*time.Second)
	p.Terminate()
	if code := p.Wait(30 * time.Second); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

func TestWiring(t *testing.T) {
	t.Parallel()
	zqfxtest.Validate(t, zqfx.Module(), zqfx.Handle("orders", Placed, NewShipping), zqfx.Sender("orders", Placed),
		fx.Provide(NewWarehouse), fx.Invoke(PlaceAtStart))
}
