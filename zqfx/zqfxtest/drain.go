package zqfxtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// interval is how often queues are looked at: the real one's sizes are a script call.
const interval = 5 * time.Millisecond

var errNotStarted = errors.New("zqfxtest: the application is not started, so nobody works on what is left")

// sight is what all queues held at one look.
type sight struct {
	unfinished, enqueued int64
	text                 string
}

// drain looks until nothing is left twice in a row, with nothing enqueued between: a handler may have moved work
// into a queue that had been looked at.
func drain(ctx context.Context, look func(context.Context) (sight, error), started func() bool) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	before := sight{unfinished: -1, text: "nobody has looked yet"}
	for {
		now, err := look(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			return err
		case err != nil: // the context is over
		case now.unfinished == 0 && before.unfinished == 0 && now.enqueued == before.enqueued:
			return nil
		case now.unfinished > 0 && !started():
			return fmt.Errorf("%w: %s", errNotStarted, now.text)
		default:
			before = now
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("zqfxtest: not drained: %s: %w", before.text, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// lookAt counts what the queues have.
func lookAt(ctx context.Context, p *zqfx.Producers, queues []string) (sight, error) {
	var s sight
	var texts []string
	for _, queue := range queues {
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
			texts = append(texts, "queue "+queue+" has "+describe(depth))
		}
	}
	s.text = strings.Join(texts, "; ")
	return s, nil
}

// describe says where the work is, and what keeps keys from it.
func describe(d zq.Depth) string {
	text := fmt.Sprintf("%d pending, %d delayed, %d running", d.Pending, d.Delayed, d.Running)
	if d.KeysWaiting+d.KeysHalted > 0 {
		text += fmt.Sprintf("; %d keys wait, %d are halted", d.KeysWaiting, d.KeysHalted)
	}
	return text
}
