package logging_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zqueue/zqueue/middleware/logging"
	"github.com/zqueue/zqueue/middleware/recovery"
	"github.com/zqueue/zqueue/middleware/retry"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// On a real server, outside retry: one line for each run, with what becomes of it.
func TestOnRedis(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	rdb, queue := zqtest.Shared(t).Client(), zqtest.Queue(t)
	again, err := retry.New(retry.MaxAttempts(2), retry.Backoff(retry.Curve{Initial: time.Millisecond, Max: time.Millisecond}))
	if err != nil {
		t.Fatal(err)
	}
	safe, err := recovery.New()
	if err != nil {
		t.Fatal(err)
	}
	p, err := zq.NewProducer(rdb, queue)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"good", "bad"} {
		m := zq.Message{ID: id, Key: secret, Body: []byte(secret), Headers: map[string]string{"h": secret}}
		if _, err := p.Enqueue(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	var j journal
	chain := zq.Chain{must(t, &j, logging.Level(zq.ActionAck, 0)), again, safe}
	c, err := zq.NewOrderedConsumer(rdb, queue, chain.Then(zq.HandlerFunc(handle)), zq.OrderedConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	zqtest.Eventually(t, limit, func() bool { return len(j.lines(t)) == 3 }, "three lines")
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	var got []string
	for _, line := range j.lines(t) {
		got = append(got, fmt.Sprint(line["level"], line["message_id"], line["attempt"], line["outcome"], line["delay"], line["reason"]))
	}
	want := []string{
		fmt.Sprint("INFO", "good", 1.0, "ack", nil, nil),
		fmt.Sprint("WARN", "bad", 1.0, "retry", float64(time.Millisecond), nil),
		fmt.Sprint("ERROR", "bad", 2.0, "dead", nil, "attempts"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if strings.Contains(j.text(), secret) || !strings.Contains(j.text(), "redis_test.go") {
		t.Errorf("a secret, or no stack:\n%s", j.text())
	}
}

func handle(_ context.Context, d *zq.Delivery) error {
	if d.ID == "bad" {
		panic(errors.New("told to"))
	}
	return nil
}
