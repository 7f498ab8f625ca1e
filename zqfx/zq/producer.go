package zq

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/internal/keys"
	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// Producer enqueues messages. It is safe for concurrent use; concurrent calls share round trips. Close it to
// wait for what is under way. It does not close the client it was given.
type Producer struct {
	rdb     redis.UniversalClient
	queue   string
	keys    keys.Keys
	scripts *script.Set
	cfg     producerConfig
	group   *group
	tokens  tokens
	wrapped SendFunc // through the middleware; nil without any
}

// NewProducer makes a producer for a queue. It lists all that is wrong with its arguments, and does no I/O.
func NewProducer(rdb redis.UniversalClient, queue string, opts ...ProducerOption) (*Producer, error) {
	cfg := defaultProducerConfig()
	for _, o := range opts {
		o.applyProducer(&cfg)
	}
	if err := errors.Join(clientFault(rdb), queueFault(queue), cfg.validate()); err != nil {
		return nil, err
	}
	p := &Producer{rdb: rdb, queue: queue, keys: keys.New(queue, 0), scripts: script.New(), cfg: cfg}
	p.group = newGroup(p.send)
	p.wrapped = chained(cfg.middleware, p.lastSend)
	return p, nil
}

// Queue is the name of the queue.
func (p *Producer) Queue() string { return p.queue }

// Enqueue adds one message. A duplicate is a result, not an error. Nothing was enqueued if the error is an
// *InvalidError, ErrStoreFull, ErrClosed or the end of ctx alone; with ErrOutcomeUnknown it may have been,
// and to send it again with the same id is safe.
func (p *Producer) Enqueue(ctx context.Context, m Message) (Receipt, error) {
	if p.wrapped != nil {
		return p.sendOne(ctx, m)
	}
	return p.enqueue(ctx, m)
}

func (p *Producer) enqueue(ctx context.Context, m Message) (Receipt, error) {
	if err := errors.Join(p.prepare(&m)...); err != nil {
		return Receipt{}, err
	}
	place := m.placement(p.cfg.window)
	r, err := p.group.join(ctx, place)
	if err != nil {
		return r, wrap(err, "enqueue "+p.queue+"/"+place.ID)
	}
	return r, nil
}

// BatchOption configures one EnqueueBatch.
type BatchOption interface{ applyBatch(*batchConfig) }

type batchConfig struct{ allOrNone bool }

type batchOption func(*batchConfig)

func (f batchOption) applyBatch(c *batchConfig) { f(c) }

// AllOrNone sends nothing if any message of the batch is invalid.
func AllOrNone() BatchOption { return batchOption(func(c *batchConfig) { c.allOrNone = true }) }

// EnqueueBatch adds up to MaxBatch messages in their order, and answers for each in its place: accepted,
// duplicate, or its own error. An invalid message does not keep the others back, unless AllOrNone. The error
// is for the call as a whole: too many messages, or Redis could not be reached for some, whose results then
// carry the error too. Messages go in steps of at most 1,000 and 8 MiB; each step is atomic.
func (p *Producer) EnqueueBatch(ctx context.Context, msgs []Message, opts ...BatchOption) ([]Result, error) {
	var cfg batchConfig
	for _, o := range opts {
		o.applyBatch(&cfg)
	}
	if len(msgs) > MaxBatch {
		return nil, invalid("batch", len(msgs), fmt.Sprintf("at most %d messages", MaxBatch))
	}
	if p.wrapped != nil {
		// A copy, for the middleware may change its messages.
		return p.wrapped(ctx, &Outgoing{Queue: p.queue, Messages: slices.Clone(msgs), Batch: true, allOrNone: cfg.allOrNone})
	}
	return p.enqueueBatch(ctx, msgs, cfg)
}

func (p *Producer) enqueueBatch(ctx context.Context, msgs []Message, cfg batchConfig) ([]Result, error) {
	results := make([]Result, len(msgs))
	places, at, faults := p.prepareAll(msgs, results)
	if cfg.allOrNone && len(faults) > 0 {
		for _, i := range at {
			results[i].Err = errNotSent
		}
		return results, errors.Join(faults...)
	}
	if err := p.group.enter(); err != nil {
		return nil, wrap(err, "enqueue "+p.queue)
	}
	defer p.group.leave()
	var failed error
	for from := 0; from < len(places); {
		to := stepEnd(places, from)
		receipts, err := p.sendStep(ctx, places[from:to], failed)
		for i := from; i < to; i++ {
			results[at[i]] = Result{Receipt: receiptOf(receipts, i-from), Err: wrap(err, "enqueue "+p.queue+"/"+places[i].ID)}
		}
		if err != nil && failed == nil {
			failed = err
		}
		from = to
	}
	return results, wrap(failed, "enqueue "+p.queue)
}

// errNotSent is the result of a valid message of an AllOrNone batch that has an invalid one.
var errNotSent = errors.New("zq: not sent: another message of the batch is invalid")

// sendStep sends a step, unless one before it failed: later messages must not overtake earlier ones.
func (p *Producer) sendStep(ctx context.Context, places []script.Placement, failed error) ([]Receipt, error) {
	if failed != nil {
		return nil, fmt.Errorf("not sent after an earlier failure: %w", failed)
	}
	return p.send(ctx, places)
}

func receiptOf(receipts []Receipt, i int) Receipt {
	if i < len(receipts) {
		return receipts[i]
	}
	return Receipt{}
}

// Close waits until calls under way have their answer, or ctx ends, and refuses new ones.
func (p *Producer) Close(ctx context.Context) error {
	if err := p.group.close(ctx); err != nil {
		return wrap(err, "close producer of "+p.queue)
	}
	return nil
}

// prepare applies the producer's settings and lists what is wrong.
func (p *Producer) prepare(m *Message) []error {
	if p.cfg.strict && m.Key == "" {
		m.Key = StrictKey
	}
	faults := m.validate(p.cfg.maxBody)
	if p.cfg.strict && m.Key != StrictKey {
		faults = append(faults, invalid("message.key", fmt.Sprintf("%q", clip(m.Key, 40)), "none with a Strict producer"))
	}
	return faults
}

// prepareAll validates a batch. at gives the place of each valid message in msgs.
func (p *Producer) prepareAll(msgs []Message, results []Result) (places []script.Placement, at []int, faults []error) {
	places, at = make([]script.Placement, 0, len(msgs)), make([]int, 0, len(msgs))
	for i := range msgs {
		m := msgs[i]
		if err := errors.Join(p.prepare(&m)...); err != nil {
			results[i].Err = err
			faults = append(faults, fmt.Errorf("message %d: %w", i, err))
			continue
		}
		places, at = append(places, m.placement(p.cfg.window)), append(at, i)
	}
	return places, at, faults
}

// send runs the enqueue script, again under the same token while the failure may pass.
func (p *Producer) send(ctx context.Context, places []script.Placement) ([]Receipt, error) {
	token := p.tokens.take()
	var placed script.Placed
	reached := p.cfg.replicas
	err := again(ctx, func(ctx context.Context) (err error) {
		if p.cfg.replicas == 0 {
			placed, err = p.scripts.Enqueue(ctx, p.rdb, p.keys, 0, token.String(), places)
			return err
		}
		node, err := pinned(ctx, p.rdb, p.keys.Msg, p.cfg.replicaWait)
		if err != nil {
			return err
		}
		placed, reached, err = p.scripts.EnqueueReplicated(ctx, node, p.keys, 0, token.String(), places, p.cfg.replicas, p.cfg.replicaWait)
		return err
	})
	p.tokens.give(token, err)
	if err != nil {
		return nil, err
	}
	receipts := readReceipts(placed, places)
	if reached < p.cfg.replicas {
		return receipts, &ReplicationError{Want: p.cfg.replicas, Got: reached}
	}
	return receipts, nil
}

func readReceipts(placed script.Placed, places []script.Placement) []Receipt {
	receipts := make([]Receipt, len(places))
	next := placed.First
	for i := range places {
		receipts[i].ID = places[i].ID
		if letter := placed.States[i : i+1]; letter == "a" {
			receipts[i].Sequence = next
			next++
		} else {
			receipts[i].Duplicate, receipts[i].State = true, stateOf(letter)
		}
	}
	return receipts
}

func validateAll(msgs []Message, maxBody int) error {
	var faults []error
	for i := range msgs {
		if err := errors.Join(msgs[i].validate(maxBody)...); err != nil {
			faults = append(faults, fmt.Errorf("message %d: %w", i, err))
		}
	}
	return errors.Join(faults...)
}

func clientFault(rdb redis.UniversalClient) error {
	if rdb == nil {
		return invalid("redis client", "nil", "a redis.UniversalClient")
	}
	return nil
}
