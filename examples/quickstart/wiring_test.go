package main

import (
	"testing"

	"github.com/zqueue/zqueue/zqfx/zqfxtest"
)

func TestWiring(t *testing.T) {
	t.Parallel()
	o := options{queue: "orders"}
	zqfxtest.Validate(t, application(o, streams{}, newBooks(o.queue, nil, nil)))
}
