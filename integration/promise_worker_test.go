package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/effect"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// A message says by these headers what its handler is to do.
const (
	headDo   = "do"   // one of the words below; nothing means what the mix says
	headThen = "then" // what a message that waited does in the end: ack, retry, dead, or effect
)

const (
	doWait = "wait" // says "waiting <id>" and waits for the word that permit gives
	doDie  = "die"  // ends its process, if that is a child's
)

// mix is how often, of a hundred runs, a handler does what.
type mix struct{ Fail, After, Postpone, Dead, Panic int }

var errMixed = errors.New("failed, as the dice say")

// fate is what a run comes to, and what of it stands in the history.
type fate func(ctx context.Context, d *zq.Delivery) (zqt.Op, error)

// fate draws lots for each run.
func (m mix) fate(d *dice) fate {
	return func(context.Context, *zq.Delivery) (zqt.Op, error) {
		n := d.below(100)
		for _, lot := range []struct {
			share int
			op    zqt.Op
			err   error
		}{
			{m.Fail, zqt.Failed, errMixed},
			{m.After, zqt.Failed, zq.RetryAfter(time.Duration(d.between(0, 15))*time.Millisecond, errMixed)},
			{m.Postpone, zqt.Postponed, zq.Postpone(time.Duration(d.between(0, 15)) * time.Millisecond)},
			{m.Dead, zqt.Dead, zq.Dead("dice", errMixed)},
			{m.Panic, zqt.Failed, nil},
		} {
			if n < lot.share {
				if lot.err == nil {
					panic("as the dice say")
				}
				return lot.op, lot.err
			}
			n -= lot.share
		}
		return zqt.Succeeded, nil
	}
}

// acks is the fate of a handler that does nothing.
func acks(context.Context, *zq.Delivery) (zqt.Op, error) { return zqt.Succeeded, nil }

// recorded makes a handler whose runs stand in a history, with the worker's name.
func recorded(emit func(zqt.Event), worker string, maxAttempts int, next fate) zq.HandlerFunc {
	return func(ctx context.Context, d *zq.Delivery) (err error) {
		note := func(op zqt.Op) {
			if op == zqt.Failed && d.Attempt >= maxAttempts {
				op = zqt.Dead
			}
			if errors.Is(context.Cause(ctx), zq.ErrLeaseLost) {
				op = zqt.Lost
			}
			emit(zqt.Event{Op: op, ID: d.ID, Key: d.Key, Attempt: d.Attempt, Worker: worker})
		}
		emit(zqt.Event{Op: zqt.Started, ID: d.ID, Key: d.Key, Attempt: d.Attempt, Worker: worker})
		op := zqt.Failed
		defer func() { note(op) }() // also of a panic
		op, err = next(ctx, d)
		return err
	}
}

// permit tells a waiting handler to go on.
func permit(ctx context.Context, rdb redis.UniversalClient, queue, id string) error {
	return rdb.RPush(ctx, zq.EffectKey(queue, "permit:"+id), "go").Err()
}

// workerSpec is what a child needs to be a worker. Its handler obeys the messages' headers, else the mix.
type workerSpec struct {
	Addr, Queue, Name                    string
	Seed                                 uint64
	Mix                                  mix
	Concurrency, ClaimAhead, KeyPrefetch int
	MaxAttempts, MaxLosses               int
	Lease                                time.Duration
	Confirm                              bool
	OnFailure                            zq.FailurePolicy
	OnDeath                              zq.DeathPolicy
	Slow                                 time.Duration // a run takes that long, or until its context ends
	Count                                bool          // acks carry an effect that counts them by id
	Tell                                 bool          // every run says "at <id>" as it starts
}

func (s *workerSpec) config() zq.ConsumerConfig {
	return zq.ConsumerConfig{
		Concurrency: s.Concurrency, ClaimAhead: s.ClaimAhead, KeyPrefetch: s.KeyPrefetch, MaxAttempts: s.MaxAttempts,
		MaxLosses: s.MaxLosses, Lease: s.Lease, ConfirmEach: s.Confirm, OnFailure: s.OnFailure, OnDeath: s.OnDeath,
		RetryDelay: shortRetry, Logger: slog.New(slog.DiscardHandler),
	}
}

// shortRetry is a retry policy for tests.
func shortRetry(d *zq.Delivery, _ error) time.Duration {
	return time.Duration(d.Attempt) * 3 * time.Millisecond
}

// child starts a worker as a process of its own.
func (x *trial) child(s workerSpec) *zqt.Process {
	x.t.Helper()
	if s.Addr == "" {
		s.Addr = x.srv.Addr()
	}
	s.Queue, s.Seed = x.queue, uint64(x.dice.below(1<<30))
	text, err := json.Marshal(s)
	x.must(err)
	p := zqt.Child(x.t, "worker", "ZQ_WORKER="+string(text))
	x.t.Cleanup(func() {
		if lines := p.Output(); x.t.Failed() {
			x.t.Logf("%s said last:\n%s", s.Name, strings.Join(lines[max(0, len(lines)-8):], "\n"))
		}
	})
	p.Expect("up", patience)
	return p
}

// killed ends a child and puts what it did into the history.
func (x *trial) killed(p *zqt.Process, name string) {
	x.t.Helper()
	p.Kill()
	x.rec.AddLines(p.Output())
	x.rec.Add(zqt.Event{Op: zqt.Lost, Worker: name})
}

// terminated ends a child in good order and puts what it did into the history.
func (x *trial) terminated(p *zqt.Process) {
	x.t.Helper()
	p.Terminate()
	x.exited(p)
}

// exited waits for a child that was asked to end.
func (x *trial) exited(p *zqt.Process) {
	x.t.Helper()
	if code := p.Wait(patience); code != 0 {
		x.t.Errorf("a child ended with code %d", code)
	}
	x.rec.AddLines(p.Output())
}

// runWorker is a child's main function.
func runWorker() {
	w := &worker{}
	if err := json.Unmarshal([]byte(os.Getenv("ZQ_WORKER")), &w.spec); err != nil {
		w.say("spec: %v", err)
		os.Exit(2)
	}
	w.rdb = redis.NewClient(&redis.Options{Addr: w.spec.Addr, PoolSize: w.spec.Concurrency + 20})
	w.mixed = w.spec.Mix.fate(dicedBy(w.spec.Seed))
	cfg := w.spec.config()
	h := recorded(func(e zqt.Event) { w.say("%s", e.Line()) }, w.spec.Name, cfg.MaxAttempts, w.run)
	c, err := zq.NewConsumer(w.rdb, w.spec.Queue, h, cfg)
	if err == nil {
		err = w.workUntilTerminated(c)
	}
	if err != nil {
		w.say("worker: %v", err)
		os.Exit(1)
	}
	w.say("stats %+v", c.Stats())
}

func (w *worker) workUntilTerminated(c *zq.Consumer) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	w.say("up") // ahead of the first message, which may be the worker's last
	if err := c.Start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // it was asked to end as it started
		}
		return err
	}
	w.say("working")
	<-ctx.Done()
	return c.Stop(context.Background())
}

type worker struct {
	spec  workerSpec
	rdb   *redis.Client
	mixed fate
	runs  atomic.Int64
}

// say writes a line, in one piece.
func (w *worker) say(format string, args ...any) {
	_, _ = os.Stdout.WriteString(fmt.Sprintf(format, args...) + "\n") // the parent may be gone
}

// run obeys the message.
func (w *worker) run(ctx context.Context, d *zq.Delivery) (zqt.Op, error) {
	if w.spec.Tell {
		w.say("at %s attempt %d fence %d", d.ID, d.Attempt, d.Fence())
	}
	if n := w.runs.Add(1); n%100 == 0 {
		w.say("run %d", n)
	}
	switch d.Headers[headDo] {
	case doDie:
		os.Exit(7)
	case doWait:
		return w.wait(ctx, d)
	}
	if w.spec.Slow > 0 {
		timer := time.NewTimer(w.spec.Slow)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if w.spec.Count {
		if err := d.Effect(effect.HIncrBy("acks", d.ID, 1)); err != nil {
			return zqt.Failed, err
		}
	}
	return w.mixed(ctx, d)
}

// wait is deaf to its context: it stands for a handler that a pause has caught.
func (w *worker) wait(ctx context.Context, d *zq.Delivery) (zqt.Op, error) {
	w.say("waiting %s", d.ID)
	if err := w.rdb.BLPop(context.WithoutCancel(ctx), 0, zq.EffectKey(w.spec.Queue, "permit:"+d.ID)).Err(); err != nil {
		w.say("permit: %v", err)
	}
	switch d.Headers[headThen] {
	case "retry":
		return zqt.Failed, errMixed
	case "dead":
		return zqt.Dead, zq.Dead("told", nil)
	case "effect":
		return zqt.Succeeded, d.Effect(effect.HIncrBy("acks", d.ID, 1))
	case "checkpoint":
		err := d.Checkpoint(context.WithoutCancel(ctx), effect.Set("mark:"+d.ID, w.spec.Name))
		w.say("checkpoint %s lost=%t", d.ID, errors.Is(err, zq.ErrLeaseLost))
		w.endOf(ctx, d)
	case "cause":
		w.endOf(ctx, d)
	}
	return zqt.Succeeded, nil
}

// endOf says why the handler's context ends.
func (w *worker) endOf(ctx context.Context, d *zq.Delivery) {
	select {
	case <-ctx.Done():
		w.say("cause %s lost=%t", d.ID, errors.Is(context.Cause(ctx), zq.ErrLeaseLost))
	case <-time.After(patience):
		w.say("cause %s never", d.ID)
	}
}
