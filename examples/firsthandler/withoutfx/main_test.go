package main

import (
	"os"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

func TestMain(m *testing.M) {
	zqtest.RegisterChild("withoutfx", main)
	os.Exit(zqtest.Main(m))
}

func TestShips(t *testing.T) {
	t.Parallel()
	p := zqtest.Child(t, "withoutfx", "ZQ_REDIS_URL="+zqtest.Redis(t).URL())
	p.Expect("shipped o-1", 30*time.Second)
	p.Terminate()
	if code := p.Wait(30 * time.Second); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}
