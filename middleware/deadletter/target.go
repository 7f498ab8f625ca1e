package deadletter

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"strconv"
	"sync/atomic"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Target is where messages go that die. The zero value is their own queue's dead letters. It is safe for concurrent
// use, and may stand for several reasons.
type Target struct{ to *target }

type target struct {
	p     zq.Enqueuer
	name  string
	keep  bool
	down  atomic.Bool // whether the last try failed, so that changes alone are logged
	fault []error
}

// TargetOption configures a Target.
type TargetOption interface{ applyTarget(*target) }

type targetOption func(*target)

func (f targetOption) applyTarget(t *target) { f(t) }

// KeepToo makes a message that was sent to another queue a dead letter of its own queue as well.
func KeepToo() TargetOption { return targetOption(func(t *target) { t.keep = true }) }

// queueName is what the core takes as a queue's name.
var queueName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// ToQueue is another queue as a target. p sends to it; name is its name, which hooks and logs tell. A message that
// dies in that very queue stays there.
//
// What is sent has headers of its own beside the message's: HeaderID, HeaderQueue, HeaderReason, HeaderAttempts and
// HeaderError. Where they do not all fit into zq's limits, the last of these are left out first; those that a message
// brings along from an earlier death are replaced.
func ToQueue(p zq.Enqueuer, name string, opts ...TargetOption) Target {
	t := &target{p: p, name: name}
	for _, o := range opts {
		if o != nil {
			o.applyTarget(t)
		}
	}
	if p == nil {
		t.fault = append(t.fault, invalid("deadletter.ToQueue producer", "nil", "a zq.Enqueuer"))
	}
	if !queueName.MatchString(name) {
		t.fault = append(t.fault, invalid("deadletter.ToQueue name", strconv.Quote(name), "1 to 128 bytes of [A-Za-z0-9._-]"))
	}
	if q, ok := p.(interface{ Queue() string }); ok && len(t.fault) == 0 && q.Queue() != name {
		t.fault = append(t.fault, invalid("deadletter.ToQueue name", strconv.Quote(name), "the producer's queue, "+q.Queue()))
	}
	return Target{to: t}
}

func (t Target) faults() []error {
	if t.to == nil {
		return nil
	}
	return t.to.fault
}

// enqueue sends a message, and makes a panic of the producer an error.
func (t *target) enqueue(ctx context.Context, m zq.Message) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &zq.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	_, err = t.p.Enqueue(ctx, m)
	return err
}

// refused tells whether a target will never take the message.
func refused(err error) bool { return errors.Is(err, zq.ErrInvalid) || errors.Is(err, zq.ErrTooLarge) }

// copyID names a message in another queue: by where it died, which message it was there, and how often it was brought
// back. So a repeat has the same id, and a later message that has the same id in its own queue another one.
func copyID(d *zq.Delivery) string {
	prefix := fmt.Sprintf("dead/%s/%d.%d/", d.Queue, d.Sequence, d.Replays)
	if id := prefix + d.ID; len(id) <= zq.MaxID && legible(d.ID) {
		return id
	}
	sum := sha256.Sum256([]byte(d.ID))
	return prefix + hex.EncodeToString(sum[:])
}
