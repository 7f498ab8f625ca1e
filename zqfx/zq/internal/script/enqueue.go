package script

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/internal/keys"
)

// Placement is one new message as the script takes it.
type Placement struct {
	ID, Key  string
	Score    string // decimal, or "" for the sequence
	Due      Due
	Envelope []byte
}

// Due says when a message may run: the zero value at once, else after a delay or at an instant, both on the
// server's clock.
type Due struct{ spec string }

// After is a delay from now.
func After(d time.Duration) Due {
	if d <= 0 {
		return Due{}
	}
	return Due{"+" + strconv.FormatInt(max(1, d.Microseconds()), 10)}
}

// At is an instant; one in the past means now. What is before 1970 has no number of microseconds to rely on.
func At(t time.Time) Due {
	if t.IsZero() || t.Unix() <= 0 {
		return Due{}
	}
	return Due{"=" + strconv.FormatInt(t.UnixMicro(), 10)}
}

func appendPlacements(args []any, list []Placement) []any {
	for i := range list {
		m := &list[i]
		args = append(args, m.ID, m.Key, m.Score, m.Due.spec, m.Envelope)
	}
	return args
}

// Placed is what became of the messages of one enqueue call.
type Placed struct {
	First  int64  // sequence of the first accepted message; the others follow without a gap
	States string // one letter a message: a accepted, else the state of the one that is there
}

// Enqueue adds messages. token names the call: sent again under the same token it has the first outcome.
// epoch is that of the shape by which the partition was chosen; a *ShapeError tells of another.
func (s *Set) Enqueue(ctx context.Context, c Run, k keys.Keys, epoch int64, token string, list []Placement) (Placed, error) {
	names, args := enqueueCall(k, epoch, token, list)
	reply, err := s.enqueue.run(ctx, c, names, args)
	if err != nil {
		return Placed{}, shapeError(err)
	}
	return readPlaced(reply, len(list))
}

func enqueueCall(k keys.Keys, epoch int64, token string, list []Placement) ([]string, []any) {
	names := []string{
		k.Msg, k.Ready, k.Delayed, k.Locks, k.Done, k.Retry, k.Ops, k.OpsAt, k.Wake, k.Meta, k.Stats, k.Dead, k.Suspect,
	}
	args := make([]any, 0, 4+5*len(list))
	return names, appendPlacements(append(args, token, k.LanePrefix, len(list), epoch), list)
}

func readPlaced(reply any, n int) (Placed, error) {
	first, states, ok := strings.Cut(text(reply), "|")
	if !ok || len(states) != n {
		return Placed{}, unexpected("enqueue", reply)
	}
	return Placed{First: number(first), States: states}, nil
}

// EnqueueReplicated is Enqueue followed by WAIT on the same connection. It says how many replicas confirmed.
// c must send a pipeline to the node of the queue.
func (s *Set) EnqueueReplicated(
	ctx context.Context, c redis.Cmdable, k keys.Keys, epoch int64, token string, list []Placement, replicas int,
	within time.Duration,
) (Placed, int, error) {
	names, args := enqueueCall(k, epoch, token, list)
	var reply, waited *redis.Cmd
	send := func(text bool) {
		// The pipeline's error is that of one of the two commands, which are looked at each by itself.
		_, _ = c.Pipelined(ctx, func(p redis.Pipeliner) error {
			if text {
				reply = p.Eval(ctx, s.enqueue.text, names, args...)
			} else {
				reply = p.EvalSha(ctx, s.enqueue.sha, names, args...)
			}
			waited = p.Do(ctx, "WAIT", replicas, within.Milliseconds())
			return nil
		})
	}
	send(false)
	if redis.HasErrorPrefix(reply.Err(), "NOSCRIPT") {
		send(true)
	}
	if err := reply.Err(); err != nil {
		return Placed{}, 0, shapeError(fmt.Errorf("script enqueue: %w", err))
	}
	placed, err := readPlaced(reply.Val(), len(list))
	return placed, int(number(waited.Val())), err
}
