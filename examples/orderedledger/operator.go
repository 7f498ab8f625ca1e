package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// operator looks after accounts that a dead letter has halted.
type operator struct {
	inspector *zq.Inspector
	books     *ledger
	out       io.Writer
	done      <-chan struct{} // the consumer's end
}

// watch mends what halts until nothing is left to do.
func (o *operator) watch(ctx context.Context) error {
	again := time.NewTicker(glance)
	defer again.Stop()
	for {
		depth, err := o.inspector.Depth(ctx)
		if err != nil {
			return err
		}
		switch {
		case depth.Dead > 0 && depth.KeysHalted > 0:
			err = o.mend(ctx)
		case depth.Unfinished() == 0 && depth.Dead == 0:
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-again.C:
		case <-o.done:
			return errors.New("the consumer stopped by itself")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// mend decides on each dead letter. First the message goes back to the head of its key's lane, then the key goes on.
func (o *operator) mend(ctx context.Context) error {
	letters, err := o.inspector.DeadLetters(ctx, time.Time{}, zq.MaxPage)
	if err != nil {
		return err
	}
	for i := range letters {
		l := &letters[i]
		if l.Reason != overdrawn {
			return fmt.Errorf("dead letter %s: %s: %s", l.Message.ID, l.Reason, l.Error)
		}
		fmt.Fprintf(o.out, "halted: %s\n", l.Error)
		o.books.grant(l.Message.Key)
		if err := o.inspector.Replay(ctx, l.Message.ID); err != nil {
			return err
		}
		if _, err := o.inspector.ResumeKey(ctx, l.Message.Key); err != nil {
			return err
		}
		fmt.Fprintf(o.out, "an operator lets %s overdraw and resumes it\n", l.Message.Key)
	}
	return nil
}
