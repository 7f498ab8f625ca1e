package zq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq/effect"
	"github.com/zqueue/zqueue/zqfx/zq/internal/envelope"
	"github.com/zqueue/zqueue/zqfx/zq/internal/keys"
	"github.com/zqueue/zqueue/zqfx/zq/internal/member"
	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// Delivery is one run of one message. It belongs to the handler that it was given to, and is not safe for
// concurrent use. A Delivery built by hand, for a handler's unit test, works but for Checkpoint.
type Delivery struct {
	Queue, ID, Kind, Key, ContentType string
	Headers                           map[string]string
	Body                              []byte
	// Attempt counts the runs of the handler for this message, this one included: 1 at first. Claims that
	// never ran it do not count; runs whose worker died do, if it held this message alone.
	Attempt int
	// MaxAttempts is the consumer's: a run with this number that fails makes a dead letter. 0 when built by hand.
	MaxAttempts int
	// Losses is how many workers have died while they held it alone.
	Losses int
	// Replays is how often it came back from the dead letters; Attempt starts anew each time.
	Replays int
	// LastError is the error of the run before, clipped.
	LastError string
	// Score is its place in the order; Sequence its enqueue sequence, 0 for a plain member.
	Score    float64
	Sequence int64
	// EnqueuedAt is when it was enqueued, by the server's clock; zero for a plain member.
	EnqueuedAt time.Time
	// DueAt is when it was due first, by the server's clock: EnqueuedAt for one without a delay.
	DueAt time.Time
	// ClaimedAt is when it was claimed, by the server's clock.
	ClaimedAt time.Time
	// Trace is what the run before left with Leave; empty on the first.
	Trace string
	// Plain says that it was put into the queue by ZADD: ID and Body are the member.
	Plain bool

	member, score string
	dedupe        time.Duration
	fence         int64
	held          *claim
	at            *slot // where it runs; nil when built by hand
	follow        []script.Placement
	carried       map[string]string
	rouse         []string
	trace         string
	effects       []effect.Effect
	bytes         int // of follow-ups and effects
}

// newDelivery opens what a claim gave. It fails with a dead-letter reason when the envelope is gone or unreadable.
func newDelivery(queue string, t *script.Taken, held *claim) (*Delivery, error) {
	m := member.Parse(t.Member)
	d := &Delivery{
		Queue: queue, ID: m.ID, Key: m.Key, Plain: m.Plain, Sequence: m.Seq, EnqueuedAt: microsTime(m.Seq),
		Attempt: t.Record.Attempts + t.Record.Losses + 1, Losses: t.Record.Losses, Replays: t.Record.Replays,
		LastError: t.Record.Error, Trace: t.Record.Trace, Score: parseScore(t.Score), member: t.Member, score: t.Score, held: held,
	}
	if held != nil {
		d.fence, d.MaxAttempts, d.ClaimedAt = held.fence, held.s.cfg.MaxAttempts, held.claimedAt
	}
	if m.Plain {
		d.Body = []byte(t.Member)
		return d, nil
	}
	if !t.HasEnvelope {
		return d, Dead(ReasonEnvelope, fmt.Errorf("the envelope of %s is gone", d.ID))
	}
	e, err := envelope.Decode(t.Envelope)
	if err != nil {
		return d, Dead(ReasonEnvelope, err)
	}
	d.Kind, d.ContentType, d.Headers, d.Body, d.dedupe = e.Kind, e.ContentType, e.Headers, e.Body, e.Dedupe
	if d.DueAt = d.EnqueuedAt.Add(e.Delay); e.DueMicros > d.EnqueuedAt.UnixMicro() {
		d.DueAt = microsTime(e.DueMicros)
	}
	return d, nil
}

// Fence is a number that grows with every claim of the queue, also after a failover that lost history. Write
// it beside what you store elsewhere, and let the store refuse a lower one: then a run that lost its lease
// cannot overwrite its successor.
func (d *Delivery) Fence() int64 { return d.fence }

// Then adds messages that enter the queue in the same atomic step as this one's ack, and only with it. One
// whose id is known is left out. They share this message's partition.
func (d *Delivery) Then(msgs ...Message) error {
	if len(d.follow)+len(msgs) > MaxBatch {
		return invalid("follow-ups", len(d.follow)+len(msgs), fmt.Sprintf("at most %d", MaxBatch))
	}
	if err := validateAll(msgs, DefaultMaxBody); err != nil {
		return err
	}
	places, size := make([]script.Placement, len(msgs)), d.bytes
	for i := range msgs {
		m := msgs[i]
		m.Headers = d.withCarried(m.Headers)
		if err := errors.Join(m.headerFaults()...); err != nil {
			m.Headers = msgs[i].Headers // what is carried along must not make a valid message invalid
		}
		places[i] = m.placement(DefaultDedupeWindow)
		size += len(places[i].Envelope) + len(places[i].ID) + len(places[i].Key)
	}
	if err := sizeFault("follow-ups", size); err != nil {
		return err
	}
	d.follow, d.bytes = append(d.follow, places...), size
	return nil
}

// Effect adds effects that happen in the same atomic step as this message's ack, and only with it: a handler
// whose state lives in the queue's namespace is exactly-once. If one cannot be applied nothing is, and the
// message counts as failed with an *EffectError.
func (d *Delivery) Effect(effects ...effect.Effect) error {
	all := slices.Concat(d.effects, effects)
	size := d.bytes + effectBytes(effects)
	if err := errors.Join(checkEffects(all), sizeFault("effects", size)); err != nil {
		return err
	}
	d.effects, d.bytes = all, size
	return nil
}

// MaxRouse is the most messages that one ack brings forward.
const MaxRouse = 1000

// Rouse brings delayed messages of these ids to their places in the same atomic step as this message's ack, and
// only with it: those of this message's partition that are delayed then; others stay as they are.
func (d *Delivery) Rouse(ids ...string) error {
	if n := len(d.rouse) + len(ids); n > MaxRouse {
		return invalid("rouse", n, fmt.Sprintf("at most %d ids", MaxRouse))
	}
	for _, id := range ids {
		if fault := textFault(id, MaxID); id == "" || fault != "" {
			return invalid("rouse.id", orEmpty(fault), fmt.Sprintf("1 to %d bytes of UTF-8 without control characters", MaxID))
		}
	}
	d.rouse = append(d.rouse, ids...)
	return nil
}

// MaxTrace is the most bytes that Leave keeps.
const MaxTrace = 128

// Leave keeps an opaque word for the message's next run, which finds it in Trace, and for its dead letter: the
// traceparent of this run, say. One of more than MaxTrace bytes, with a control character, a '|' or bytes that are
// not UTF-8, is dropped. It is lost with this worker, and with an ack.
func (d *Delivery) Leave(trace string) {
	if textFault(trace, MaxTrace) == "" && !strings.Contains(trace, "|") {
		d.trace = trace
	}
}

// Within names the context with which observers hear of this run, such as one with its span. A middleware calls it
// before the handler runs.
func (d *Delivery) Within(ctx context.Context) {
	if d.at != nil {
		d.at.within(ctx, d)
	}
}

// Context is what Within has named, for an observer that hears of this run: it has the values, and never ends. It is
// context.Background where nothing was named.
func (d *Delivery) Context() context.Context {
	if d.at == nil {
		return context.Background()
	}
	return d.at.context()
}

// Carry adds a header to each message that Then attaches from now on, unless it has one of that name, or no room.
func (d *Delivery) Carry(name, value string) {
	if d.carried == nil {
		d.carried = make(map[string]string)
	}
	d.carried[name] = value
}

// withCarried adds to a copy.
func (d *Delivery) withCarried(headers map[string]string) map[string]string {
	if len(d.carried) == 0 {
		return headers
	}
	all := maps.Clone(d.carried)
	maps.Copy(all, headers)
	return all
}

// Checkpoint applies effects now, without the ack, if the message's lease is still held: ErrLeaseLost if it is
// not, an *EffectError if one cannot be applied. After ErrOutcomeUnknown they may have been applied.
func (d *Delivery) Checkpoint(ctx context.Context, effects ...effect.Effect) error {
	if d.held == nil {
		return fmt.Errorf("zq: checkpoint %s/%s: %w", d.Queue, d.ID, ErrLeaseLost)
	}
	if err := errors.Join(checkEffects(effects), sizeFault("effects", effectBytes(effects))); err != nil {
		return err
	}
	code, err := d.held.checkpoint(ctx, d.member, wireEffects(effects))
	switch {
	case err != nil:
		return wrap(err, "checkpoint "+d.Queue+"/"+d.ID)
	case code == script.CodeLost:
		return fmt.Errorf("zq: checkpoint %s/%s: %w", d.Queue, d.ID, ErrLeaseLost)
	case code > 1:
		return effectError(effects, code)
	}
	return nil
}

// attached tells whether the ack carries more than itself.
func (d *Delivery) attached() bool {
	return len(d.follow) > 0 || len(d.effects) > 0 || len(d.rouse) > 0
}

// EffectKey is the name in Redis of an effect's key, for reading it.
func EffectKey(queue, name string) string { return keys.New(queue, 0).Effect(name) }

// sizeFault keeps what goes into one script within bounds.
func sizeFault(what string, bytes int) error {
	if bytes > MaxAttached {
		return invalid(what, fmt.Sprintf("%d bytes", bytes), fmt.Sprintf("at most %d bytes together", MaxAttached))
	}
	return nil
}

func effectBytes(list []effect.Effect) int {
	n := 0
	for _, e := range list {
		n += len(e.Name())
		for _, a := range e.Args() {
			n += len(a)
		}
	}
	return n
}

func checkEffects(list []effect.Effect) error {
	for i, e := range list {
		if fault := e.Fault(); fault != "" {
			return invalid(fmt.Sprintf("effect[%d]", i), fault, "a verb of package effect with valid arguments")
		}
	}
	if fault := effect.ListFault(list); fault != "" {
		return invalid("effects", fault, "a list whose checks need not see its own writes")
	}
	return nil
}

func wireEffects(list []effect.Effect) []script.Effect {
	out := make([]script.Effect, len(list))
	for i, e := range list {
		args := make([]any, len(e.Args()))
		for j, a := range e.Args() {
			args[j] = a
		}
		out[i] = script.Effect{Name: e.Name(), Verb: e.Verb(), Args: args}
	}
	return out
}

// effectError reads a script's code, which is one more than the place of the effect, counted from 1.
func effectError(list []effect.Effect, code int) *EffectError {
	at := code - 2
	e := &EffectError{Index: at, Effect: "follow-up"}
	if at < len(list) {
		e.Effect = list[at].String()
	}
	return e
}
