package zqfx

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// ErrNotReady is behind each error of Health.Check.
var ErrNotReady = errors.New("zqfx: not ready")

// askTime bounds a question to Redis that goes through the application's client.
const askTime = time.Second

// Health says whether an instance works, for a readiness probe. It is safe for concurrent use.
type Health struct {
	instance instance
	link     *link

	mu     sync.Mutex
	phase  phase
	worker *Worker // nil where nothing is consumed
}

// phase is where an instance is in its life.
type phase string

const (
	phaseNew      phase = "not started"
	phaseRunning  phase = "running"
	phaseStopping phase = "stopping"
)

func newHealth(lc fx.Lifecycle, m *module, p *plan, l *link) *Health {
	h := &Health{instance: m.instance, link: l, phase: phaseNew}
	if m.producerOnly || m.offByEnv || !p.consume {
		lc.Append(fx.StartStopHook(func() { h.enter(phaseRunning) }, func() { h.enter(phaseStopping) }))
	}
	return h
}

// QueueStatus is what one consumer does.
type QueueStatus struct {
	Queue string
	// State is new, claiming, idle, paused, degraded or stopped.
	State string
	// Trouble names the calls to Redis that fail, when degraded.
	Trouble []string
	Stats   zq.ConsumerStats
}

// describe is the state, with the trouble if there is any.
func (s *QueueStatus) describe() string {
	if len(s.Trouble) == 0 {
		return s.State
	}
	return s.State + ": " + strings.Join(s.Trouble, ", ")
}

// Check is nil when the instance is ready: started, not stopping, and each of its consumers works. A paused queue
// is ready: somebody meant it. Where nothing is consumed Redis is asked, for a second at most and as ctx
// allows; elsewhere the consumers' own calls tell, and ctx is not needed. Errors are ErrNotReady.
func (h *Health) Check(ctx context.Context) error {
	h.mu.Lock()
	now, w := h.phase, h.worker
	h.mu.Unlock()
	if now != phaseRunning {
		return fmt.Errorf("%w: %s is %s", ErrNotReady, h.instance, now)
	}
	if w == nil || len(w.runners) == 0 {
		return h.ping(ctx)
	}
	var faults []error
	for _, s := range w.status() {
		if s.State == "degraded" || s.State == "stopped" || s.State == "new" {
			faults = append(faults, fmt.Errorf("%w: queue %s is %s", ErrNotReady, s.Queue, s.describe()))
		}
	}
	return errors.Join(faults...)
}

// Status is what each consumer of the instance does, sorted by queue; empty where nothing is consumed.
func (h *Health) Status() []QueueStatus {
	h.mu.Lock()
	w := h.worker
	h.mu.Unlock()
	if w == nil {
		return nil
	}
	return w.status()
}

func (h *Health) ping(ctx context.Context) error {
	_, err := ask(ctx, func(ctx context.Context) (string, error) { return h.link.rdb.Ping(ctx).Result() })
	if err != nil {
		return fmt.Errorf("%w: %s: ping: %w", ErrNotReady, h.instance, err)
	}
	return nil
}

// ask puts a question to Redis through the application's client, and waits askTime for the answer at most. A client
// that ignores its context is not waited for; its own timeouts end the call.
func ask(ctx context.Context, question func(context.Context) (string, error)) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	type reply struct {
		text string
		err  error
	}
	replies := make(chan reply, 1)
	go func() {
		var r reply
		r.err = guard("the redis client", func() (err error) { r.text, err = question(ctx); return err })
		replies <- r
	}()
	select {
	case r := <-replies:
		return r.text, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (h *Health) watch(w *Worker) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.worker = w
}

func (h *Health) enter(p phase) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.phase = p
}
