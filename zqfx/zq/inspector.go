package zq

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/internal/envelope"
	"github.com/zqueue/zqueue/zqfx/zq/internal/keys"
	"github.com/zqueue/zqueue/zqfx/zq/internal/member"
	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// Inspector looks at a queue and steers it. It is safe for concurrent use and needs no closing.
type Inspector struct {
	rdb     redis.UniversalClient
	queue   string
	keys    keys.Keys
	scripts *script.Set
	tokens  tokens
}

// NewInspector makes an inspector of a queue. It does no I/O.
func NewInspector(rdb redis.UniversalClient, queue string) (*Inspector, error) {
	if err := errors.Join(clientFault(rdb), queueFault(queue)); err != nil {
		return nil, err
	}
	return &Inspector{rdb: rdb, queue: queue, keys: keys.New(queue, 0), scripts: script.New()}, nil
}

// Depth is how many messages are where, each partition's part read in one step.
type Depth struct {
	// Pending can be claimed or wait behind others of their key. Plain members count where no message with
	// an envelope is in the queue; beside such messages they show in Ready alone.
	Pending int64
	// Delayed are not due yet, messages that failed and skip their key included.
	Delayed int64
	// Running are in a claim.
	Running int64
	// Suspect run alone next, because a worker died that had them: messages without a key, and one entry for
	// each of KeysSuspect.
	Suspect int64
	// Dead are dead letters.
	Dead int64
	// Ready counts what a claim can take at once: messages, and keys with at least one message.
	Ready int64
	// Keys by what holds them.
	KeysHeld, KeysWaiting, KeysSuspect, KeysHalted, KeysPaused int64
	// Claims are processing sets under a lease.
	Claims int64
	// DedupeRecords are ids remembered after their ack.
	DedupeRecords int64
	// OldestReady is how long ago the message was enqueued that is next in order; 0 with nothing ready.
	OldestReady time.Duration
	// Paused says that nothing is claimed.
	Paused bool
}

// Unfinished is how much work is left: what waits, is delayed, runs or is suspect. Dead letters are not in it.
//
// A suspect key's entry stands for messages that are in Pending already.
func (d Depth) Unfinished() int64 {
	return max(d.Pending, d.Ready) + d.Delayed + d.Running + max(0, d.Suspect-d.KeysSuspect)
}

// Depth reads the queue's sizes. Its cost grows with the keys that are held or wait.
func (i *Inspector) Depth(ctx context.Context) (Depth, error) {
	var sum Depth
	err := i.each(ctx, func(k keys.Keys) error {
		d, err := i.scripts.Depth(ctx, i.rdb, k)
		if err == nil {
			sum.add(readDepth(d))
		}
		return err
	})
	if err != nil {
		return Depth{}, wrap(err, "depth of "+i.queue)
	}
	return sum, nil
}

// add sums up partitions.
func (d *Depth) add(o Depth) {
	d.Pending, d.Delayed, d.Running, d.Suspect = d.Pending+o.Pending, d.Delayed+o.Delayed, d.Running+o.Running, d.Suspect+o.Suspect
	d.Dead, d.Ready, d.Claims, d.DedupeRecords = d.Dead+o.Dead, d.Ready+o.Ready, d.Claims+o.Claims, d.DedupeRecords+o.DedupeRecords
	d.KeysHeld, d.KeysWaiting, d.KeysSuspect = d.KeysHeld+o.KeysHeld, d.KeysWaiting+o.KeysWaiting, d.KeysSuspect+o.KeysSuspect
	d.KeysHalted, d.KeysPaused = d.KeysHalted+o.KeysHalted, d.KeysPaused+o.KeysPaused
	d.OldestReady, d.Paused = max(d.OldestReady, o.OldestReady), d.Paused || o.Paused
}

func readDepth(d script.Depth) Depth {
	asleep := d.KeysAsleep + d.KeysDying
	out := Depth{
		Delayed: max(0, d.Delayed-asleep), Running: d.Running, Suspect: d.Suspect, Dead: d.Dead, Ready: d.Ready,
		KeysHeld: d.KeysHeld, KeysWaiting: asleep, KeysSuspect: d.KeysSuspect, KeysHalted: d.KeysHalted, KeysPaused: d.KeysPaused,
		Claims: d.Claims, DedupeRecords: d.DedupeRecords, Paused: d.Paused,
	}
	out.Pending = max(0, d.Envelopes-d.Dead-d.Running-out.Delayed-max(0, d.Suspect-d.KeysSuspect))
	if d.Envelopes == 0 {
		out.Pending = d.Ready
	}
	if d.OldestReady > 0 {
		out.OldestReady = time.Duration(max(0, d.Now-d.OldestReady)) * time.Microsecond
	}
	return out
}

// Counters are the queue's totals since it was made. Enqueued = Acked + Cancelled + Purged + what is present;
// plain members are in none of these.
type Counters struct {
	Enqueued   int64 // messages taken in, follow-ups included
	Duplicates int64 // messages that were there already
	Acked      int64
	AckedPlain int64 // plain members acked
	Failed     int64 // runs that failed, a message's last one included
	Dead       int64 // messages that became dead letters
	Replayed   int64 // dead letters sent back to work
	Purged     int64 // dead letters removed, or gone by retention
	Cancelled  int64
	Reaped     int64 // claims whose lease ran out
	Rescued    int64 // messages they held
	Forgotten  int64 // dedupe records dropped before their window ended, because there were too many
	Refused    int64 // outcomes, checkpoints and heartbeats of claims whose lease was over
}

// Counters reads the totals.
func (i *Inspector) Counters(ctx context.Context) (Counters, error) {
	sum := map[string]int64{}
	err := i.each(ctx, func(k keys.Keys) error {
		all, err := i.rdb.HGetAll(ctx, k.Stats).Result()
		for name, text := range all {
			if v, bad := strconv.ParseInt(text, 10, 64); bad == nil { // one that was overwritten counts no more
				sum[name] += v
			}
		}
		return err
	})
	if err != nil {
		return Counters{}, wrap(err, "counters of "+i.queue)
	}
	n := func(name string) int64 { return sum[name] }
	return Counters{
		Enqueued: n("enqueued"), Duplicates: n("duplicates"), Acked: n("acked"), AckedPlain: n("acked_plain"),
		Failed: n("failed"), Dead: n("dead"), Replayed: n("replayed"), Purged: n("purged"), Cancelled: n("cancelled"),
		Reaped: n("reaped"), Rescued: n("rescued"), Refused: n("refused"),
		Forgotten: n("forgotten"),
	}, nil
}

// Info is one message as it lies in the queue.
type Info struct {
	ID    string
	State State
	// Message is what was enqueued; its Delay and Due are not kept. Zero for a message that is done.
	Message Message
	// Score is its place in the order; Due when it may run, for a delayed one or a retry.
	Score float64
	Due   time.Time
	// EnqueuedAt and Sequence tell when it came; zero for a plain member.
	EnqueuedAt time.Time
	Sequence   int64
	// Attempts are its failed runs, Losses its lost ones, Replays its returns from the dead letters.
	Attempts, Losses, Replays int
	LastError                 string
	// Blocked is what its key waits for: a claim, "delayed", "suspect" or "halted"; empty if nothing.
	Blocked string
	// Dead is its story as a dead letter, else nil.
	Dead *DeadLetter
	// Remembered is until when a done message's id is a duplicate.
	Remembered time.Time
}

// Message looks a message up by id. ErrNotFound if it is unknown or forgotten.
func (i *Inspector) Message(ctx context.Context, id string) (Info, error) {
	_, f, err := i.find(ctx, id)
	if err != nil {
		return Info{}, wrap(err, "look up "+i.queue+"/"+id)
	}
	switch f.Letter {
	case "":
		return Info{}, wrap(ErrNotFound, "look up "+i.queue+"/"+clip(id, MaxID))
	case "o":
		return Info{ID: id, State: StateDone, Remembered: microsTime(f.DoneUntil)}, nil
	}
	m := member.Parse(f.Member)
	info := Info{
		ID: m.ID, State: stateOf(f.Letter), EnqueuedAt: microsTime(m.Seq), Sequence: m.Seq,
		Attempts: f.Record.Attempts, Losses: f.Record.Losses, Replays: f.Record.Replays, LastError: f.Record.Error,
		Message: openMessage(m, f.Envelope), Score: parseScore(f.Score),
	}
	info.Blocked, _, _ = strings.Cut(f.Lock, "|")
	if info.State == StateDelayed || info.State == StateRetry && f.Record.Score != "" && f.Score != f.Record.Score {
		info.Due, info.Score = microsTime(int64(parseScore(f.Score))), parseScore(f.Record.Score)
	}
	if info.State == StateDead {
		letter := readLetter(f.Member, parseScore(f.Score), f.Envelope, f.Story)
		info.Dead, info.Score = &letter, letter.Score
		info.Attempts, info.Losses, info.Replays, info.LastError = letter.Attempts, letter.Losses, letter.Replays, letter.Error
	}
	return info, nil
}

// openMessage gives what an envelope holds; of an unreadable one, id and key.
func openMessage(m member.Member, raw string) Message {
	out := Message{ID: m.ID, Key: m.Key}
	if m.Plain {
		out.Body = []byte(m.ID)
		return out
	}
	if e, err := envelope.Decode(raw); err == nil {
		out.Kind, out.Route, out.ContentType, out.Headers, out.Body = e.Kind, e.Route, e.ContentType, e.Headers, e.Body
	}
	return out
}

func parseScore(s string) float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0
	}
	return f
}

func (i *Inspector) pause(ctx context.Context, on bool) (changed bool, err error) {
	err = i.each(ctx, func(k keys.Keys) error {
		one, err := i.scripts.Pause(ctx, i.rdb, k, on)
		changed = changed || one
		return err
	})
	return changed, err
}

// Pause stops claiming, in all consumers; handlers at work finish. It says whether the queue was running.
func (i *Inspector) Pause(ctx context.Context) (changed bool, err error) {
	changed, err = i.pause(ctx, true)
	return changed, wrap(err, "pause "+i.queue)
}

// Resume starts claiming again. It says whether the queue was paused.
func (i *Inspector) Resume(ctx context.Context) (changed bool, err error) {
	changed, err = i.pause(ctx, false)
	return changed, wrap(err, "resume "+i.queue)
}

// ResumeKey lets a key go on that HaltKey or PauseKey stopped. It says whether either had.
func (i *Inspector) ResumeKey(ctx context.Context, key string) (changed bool, err error) {
	err = i.each(ctx, func(k keys.Keys) error { // its messages may have several routes
		one, err := i.scripts.ResumeKey(ctx, i.rdb, k, key)
		changed = changed || one
		return err
	})
	return changed, wrap(err, "resume a key of "+i.queue)
}

// Report is what Verify found.
type Report struct {
	// Messages were looked at.
	Messages int64
	// Problems says what does not agree; empty in a healthy queue.
	Problems []string
}

// VerifyMost is how many messages Verify looks at unless told otherwise.
const VerifyMost = 100_000

const verifyProblems = 100

// Verify walks every index and every envelope, both ways, in one atomic step a partition, and says what does not agree: a
// message in two places or in none, a key nobody will wake, counters that do not balance. Redis answers
// nobody else meanwhile, some milliseconds per thousand messages, so it refuses with ErrTooLarge above most,
// or above VerifyMost if most is 0.
func (i *Inspector) Verify(ctx context.Context, most int) (Report, error) {
	if most <= 0 {
		most = VerifyMost
	}
	var out Report
	err := i.each(ctx, func(k keys.Keys) error {
		n, problems, err := i.scripts.Verify(ctx, i.rdb, k, most, verifyProblems)
		out.Messages += n
		out.Problems = append(out.Problems, problems...)
		return err
	})
	return out, wrap(err, "verify "+i.queue)
}
