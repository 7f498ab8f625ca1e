package zqfx_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// B53: SIGTERM at each phase of an application's life. It exits in time, by the code that is right, and what it had
// others run.
func TestB53SIGTERMAtEachPhase(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name     string
		program  program
		messages []string
		signal   func(*testing.T, *zqtest.Process)
		code     int  // -1: by the signal
		closed   bool // hooks of others ran
	}{
		{
			// fx listens for signals only when the start is over: the process dies as it stands.
			"before the start is done", program{HoldStart: true, Lease: zq.MinLease}, []string{"heed-1", "heed-2", "quick-1"},
			func(t *testing.T, p *zqtest.Process) { expect(t, p, "starting", "at heed", "at heed"); p.Terminate() }, -1, false,
		},
		{
			"idle", program{}, nil,
			func(t *testing.T, p *zqtest.Process) { expect(t, p, "up"); p.Terminate() }, 0, true,
		},
		{
			"while handlers run", program{}, []string{"heed-1", "heed-2", "quick-1", "quick-2"},
			func(t *testing.T, p *zqtest.Process) { expect(t, p, "up", "at heed", "at heed"); p.Terminate() }, 0, true,
		},
		{
			"again during the drain", program{}, []string{"heed-1", "quick-1"},
			func(t *testing.T, p *zqtest.Process) {
				expect(t, p, "up", "at heed")
				p.Terminate()
				expect(t, p, "stopping")
				p.Terminate()
			}, 0, true,
		},
		{
			"while a handler is deaf", program{}, []string{"deaf-1", "heed-1", "quick-1"},
			func(t *testing.T, p *zqtest.Process) { expect(t, p, "up", "at deaf"); p.Terminate() }, 1, true,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server, queue := zqtest.Shared(t), zqtest.Queue(t)
			rdb := server.Client()
			for _, id := range c.messages {
				put(t, rdb, queue, id)
			}
			c.program.Addr, c.program.Queue, c.program.Shutdown = server.Addr(), queue, time.Second
			if c.program.Lease == 0 {
				c.program.Lease = time.Minute // what it holds when it ends comes back late, if it was not given back
			}
			p := c.program.start(t)
			c.signal(t, p)
			began := time.Now()
			if code := p.Wait(limit); code != c.code {
				t.Errorf("it exited with %d, want %d", code, c.code)
			}
			if took := time.Since(began); took > 6*time.Second {
				t.Errorf("it took %v to exit", took)
			}
			if closed := slices.Contains(p.Output(), "database closed"); closed != c.closed {
				t.Errorf("hooks of others ran: %t, want %t", closed, c.closed)
			}
			finished(t, rdb, queue, len(c.messages))
		})
	}
}

// expect takes lines until one with each beginning has come, in any order.
func expect(t *testing.T, p *zqtest.Process, beginnings ...string) {
	t.Helper()
	for len(beginnings) > 0 {
		line := zqtest.Wait(t, p.Lines(), limit)
		if line == "" {
			t.Fatalf("it ended without %q", beginnings)
		}
		for i, b := range beginnings {
			if strings.HasPrefix(line, b) {
				beginnings = slices.Delete(slices.Clone(beginnings), i, i+1)
				break
			}
		}
	}
}

// put enqueues an order whose message has the same id.
func put(t *testing.T, rdb redis.UniversalClient, queue, id string) {
	t.Helper()
	producer, err := zq.NewProducer(rdb, queue)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Placed.Send(t.Context(), producer, OrderPlaced{ID: id}, zq.WithID(id)); err != nil {
		t.Fatal(err)
	}
}

// finished runs what is left of n messages in another application, and fails the test unless each was acked, and
// none charged with a run that a shutdown ended.
func finished(t *testing.T, rdb *redis.Client, queue string, n int) {
	t.Helper()
	app, _ := begun(t, client(rdb), plain(), zqfx.Module(), zqfx.Queue(queue),
		zqfx.HandleFunc(queue, Placed, func(context.Context, *zq.Delivery, OrderPlaced) error { return nil }))
	defer stopped(t, app)
	in := inspectorOf(t, rdb, queue)
	zqtest.Eventually(t, limit, func() bool {
		d, err := in.Depth(t.Context())
		return err == nil && d.Unfinished() == 0 && d.Claims == 0
	}, "all is done")
	c, err := in.Counters(t.Context())
	if err != nil || c.Acked != int64(n) || c.Enqueued != int64(n) || c.Failed != 0 || c.Dead != 0 {
		t.Errorf("want %d acked and none failed: %+v, %v", n, c, err)
	}
	if r, err := in.Verify(t.Context(), 1000); err != nil || len(r.Problems) > 0 {
		t.Errorf("the queue is damaged: %+v, %v", r, err)
	}
}
