package metrics

import (
	"context"
	"time"

	"github.com/zqueue/zqueue/middleware/internal/semconv"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// Send counts messages by what became of them, and measures calls.
func (m *Metrics) Send() zq.SendMiddleware {
	return func(next zq.SendFunc) zq.SendFunc {
		return func(ctx context.Context, o *zq.Outgoing) ([]zq.Result, error) {
			n, began := len(o.Messages), time.Now()
			results, err := next(ctx, o)
			m.inst.operation.Record(ctx, time.Since(began).Seconds(), m.sets.of(labels{
				queue: o.Queue, kind: semconv.Send, name: semconv.Send, failure: semconv.ErrorType(err),
			}))
			m.sent(ctx, o.Queue, n, results, err)
			return results, err
		}
	}
}

// sent counts each of n messages once; those without a result of their own have the call's.
func (m *Metrics) sent(ctx context.Context, queue string, n int, results []zq.Result, err error) {
	counts := make(map[labels]int64, 1)
	for i := range n {
		l := labels{queue: queue, name: semconv.Send}
		switch {
		case i >= len(results):
			l.failure = semconv.ErrorType(err)
		case results[i].Err != nil:
			l.failure = semconv.ErrorType(results[i].Err)
		case results[i].Duplicate:
			l.result = semconv.ResultDuplicate
		}
		counts[l]++
	}
	for l, count := range counts {
		m.inst.sent.Add(ctx, count, m.sets.of(l))
	}
}
