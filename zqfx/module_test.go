package zqfx_test

import (
	"testing"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

func TestModuleRunsHandlers(t *testing.T) {
	t.Parallel()
	queue := zqtest.Queue(t)
	run, ran := reporting()
	var p *zqfx.Producers
	started(t, shared(t), zqfx.Module(), zqfx.Queue(queue, zqfx.Ordered(), zqfx.Concurrency(4)),
		zqfx.Handle(queue, Placed, handler(run)), fx.Populate(&p))
	send(t, p, queue, "o-1")
	want(t, ran, "o-1")
}
