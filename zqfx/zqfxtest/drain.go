package zqfxtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zqueue/zqueue/zqfx"
)

// interval is how often a queue is looked at: the real one's sizes are a script call.
const interval = 5 * time.Millisecond

var errNotStarted = errors.New("zqfxtest: the application is not started, so nobody works on what is left")

// sight is what all queues held at one look.
type sight struct {
	unfinished, enqueued int64
	text                 string
}

// drain looks until nothing is left twice in a row, with nothing enqueued between: a handler may have moved work
// into a queue that had been looked at.
func drain(ctx context.Context, p *zqfx.Producers, started bool) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	before := sight{unfinished: -1}
	for {
		now, err := look(ctx, p)
		switch {
		case err != nil && ctx.Err() == nil:
			return err
		case err == nil && now.unfinished == 0 && before.unfinished == 0 && now.enqueued == before.enqueued:
			return nil
		case err == nil && now.unfinished > 0 && !started:
			return fmt.Errorf("%w: %s", errNotStarted, now.text)
		case err == nil:
			before = now
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("zqfxtest: work is left: %s: %w", before.text, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

func look(ctx context.Context, p *zqfx.Producers) (sight, error) {
	var s sight
	var texts []string
	for _, queue := range p.Queues() {
		i, err := p.Inspector(queue)
		if err != nil {
			return sight{}, err
		}
		depth, err := i.Depth(ctx)
		if err != nil {
			return sight{}, err
		}
		counters, err := i.Counters(ctx)
		if err != nil {
			return sight{}, err
		}
		s.unfinished += depth.Unfinished()
		s.enqueued += counters.Enqueued
		if depth.Unfinished() > 0 {
			texts = append(texts, fmt.Sprintf("queue %s has %d pending, %d delayed, %d running", queue, depth.Pending,
				depth.Delayed, depth.Running))
		}
	}
	s.text = strings.Join(texts, "; ")
	return s, nil
}
