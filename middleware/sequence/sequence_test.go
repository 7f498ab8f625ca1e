package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/zqueue/zqueue/middleware/sequence"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// upTo is 1 to n.
func upTo(n int64) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = int64(i) + 1
	}
	return all
}

// Ten keys whose messages three producers send in any order: each key is completed in the order of its numbers,
// each number once, and nobody is charged for coming early. The limit is an hour, so nothing waits for time.
func TestShuffledArrivals(t *testing.T) {
	t.Parallel()
	x := newTrial(t, zqtest.Shared(t).Client())
	const keys, each = 10, 50
	var all [][2]int64
	for k := range int64(keys) {
		for _, n := range upTo(each) {
			all = append(all, [2]int64{k, n})
		}
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var wg sync.WaitGroup
	for part := range 3 {
		wg.Go(func() {
			for i := part; i < len(all); i += 3 {
				x.send(fmt.Sprint("k", all[i][0]), all[i][1])
			}
		})
	}
	x.start(nil)
	x.start(nil)
	wg.Wait()
	for k := range keys {
		key := fmt.Sprint("k", k)
		x.ordered(key, upTo(each)...)
		if s := x.state(key); s.Confirmed != each || s.Waiting != 0 || len(s.Skipped) > 0 {
			t.Errorf("state of %s: %+v", key, s)
		}
	}
	if n, highest := x.ran(); n != keys*each || highest != 1 {
		t.Errorf("%d runs, the highest attempt %d: want %d runs and no message charged", n, highest, keys*each)
	}
	if n := x.told(sequence.Overdue) + x.told(sequence.Duplicate); n > 0 {
		t.Errorf("%d reports of gaps or duplicates", n)
	}
}

// Each message that is early is claimed once to find that out, and once when its predecessor is confirmed.
func TestPredecessorWakes(t *testing.T) {
	t.Parallel()
	x := newTrial(t, zqtest.Shared(t).Client())
	c := x.start(nil)
	x.send("k", 5, 3, 4, 2)
	x.waiting(4)
	if n := c.Stats().Started; n != 4 {
		t.Errorf("%d runs so far, want one for each message", n)
	}
	if ttl := x.rdb.PTTL(t.Context(), zq.EffectKey(x.queue, "seqw:k")).Val(); ttl <= 0 || ttl > sequence.DefaultKeep {
		t.Errorf("the waiting set lives %v", ttl)
	}
	x.send("k", 1)
	x.ordered("k", 1, 2, 3, 4, 5)
	x.eventually(func() bool { return c.Stats().Settled == 9 }, "all is settled")
	if s := c.Stats(); s.Started != 9 || s.Postponed != 4 {
		t.Errorf("%d runs and %d of them postponed, want 9 and 4: nothing polls", s.Started, s.Postponed)
	}
	if _, highest := x.ran(); highest != 1 {
		t.Errorf("a message was charged: attempt %d", highest)
	}
	hash := zq.EffectKey(x.queue, "seq:k")
	if got := x.rdb.HGetAll(t.Context(), hash).Val(); len(got) != 1 || got["n"] != "5" {
		t.Errorf("state %v, want what is confirmed and nothing else", got)
	}
	if ttl := x.rdb.PTTL(t.Context(), hash).Val(); ttl <= 0 || ttl > sequence.DefaultKeep {
		t.Errorf("the state lives %v", ttl)
	}
}

func TestFirstNumberAndForever(t *testing.T) {
	t.Parallel()
	x := newTrial(t, zqtest.Shared(t).Client())
	x.start(nil, sequence.First(0), sequence.Keep(0))
	x.send("k", 1, 0, 2)
	x.ordered("k", 0, 1, 2)
	if ttl := x.rdb.PTTL(t.Context(), zq.EffectKey(x.queue, "seq:k")).Val(); ttl != -1 {
		t.Errorf("the state lives %v, want no end", ttl)
	}
}

// A failed run confirms nothing; its successor waits in its key, and then here.
func TestFailureConfirmsNothing(t *testing.T) {
	t.Parallel()
	x := newTrial(t, zqtest.Shared(t).Client())
	x.start(func(d *zq.Delivery) error {
		if d.Headers[sequence.Header] == "2" && d.Replays == 0 {
			return errors.New("no")
		}
		return nil
	})
	x.send("k", 1, 2, 3)
	x.dead(id("k", 2) + " " + zq.ReasonAttempts)
	x.waiting(1)
	x.ordered("k", 1)
	if err := x.look.Replay(t.Context(), id("k", 2)); err != nil {
		t.Fatal(err)
	}
	x.ordered("k", 1, 2, 3)
}

func TestDuplicatesAreAckedUnrun(t *testing.T) {
	t.Parallel()
	x := newTrial(t, zqtest.Shared(t).Client())
	x.start(nil)
	x.send("k", 2)
	x.waiting(1)
	twin := zq.Message{ID: "twin", Key: "k", Headers: map[string]string{sequence.Header: "2"}}
	x.put(twin)
	x.eventually(func() bool { return x.told(sequence.Waits) == 2 }, "both wait")
	x.send("k", 1)
	x.ordered("k", 1, 2)
	x.eventually(func() bool { return x.told(sequence.Duplicate) == 1 }, "the twin is woken too, and is a duplicate")
	x.put(zq.Message{ID: "later", Key: "k", Headers: map[string]string{sequence.Header: "1"}})
	x.eventually(func() bool { return x.told(sequence.Duplicate) == 2 }, "a later one is as well")
	x.over(4)
	x.ordered("k", 1, 2)
}

// over waits until so many messages are acked, and makes sure that the queue is whole and empty.
func (x *trial) over(acked int64) {
	x.t.Helper()
	x.eventually(func() bool {
		n, err := x.look.Counters(context.Background())
		return err == nil && n.Acked == acked
	}, "%d messages are acked", acked)
	r, err := x.look.Verify(context.Background(), 0)
	if err != nil || len(r.Problems) > 0 {
		x.t.Errorf("verify: %+v, %v", r, err)
	}
}

func TestHostileNumbers(t *testing.T) {
	t.Parallel()
	x := newTrial(t, zqtest.Shared(t).Client())
	x.start(nil, sequence.MaxAhead(1000))
	bad := []string{"", "0", "-1", "007", "+1", "1.0", "NaN", "9007199254740992", "99999999999999999999", "١"}
	want := make([]string, 0, len(bad)+4)
	for i, text := range bad {
		id := fmt.Sprint("bad-", i)
		x.put(zq.Message{ID: id, Key: "k", Headers: map[string]string{sequence.Header: text}})
		want = append(want, id+" "+sequence.ReasonNumber)
	}
	x.put(zq.Message{ID: "none", Key: "k"})
	x.put(zq.Message{ID: "no-key", Headers: map[string]string{sequence.Header: "1"}})
	x.put(zq.Message{ID: "far", Key: "k", Headers: map[string]string{sequence.Header: "1001"}})
	x.put(zq.Message{ID: "farthest", Key: "k", Headers: map[string]string{sequence.Header: "9007199254740991"}})
	x.dead(append(want, "none "+sequence.ReasonNumber, "no-key "+sequence.ReasonNumber,
		"far "+sequence.ReasonGap, "farthest "+sequence.ReasonGap)...)
	x.send("k", 1)
	x.ordered("k", 1)
	if n, _ := x.ran(); n != 1 {
		t.Errorf("%d runs, want that of the good one", n)
	}
}

func TestHostileKeys(t *testing.T) {
	t.Parallel()
	x := newTrial(t, zqtest.Shared(t).Client())
	x.start(nil)
	keys := []string{"}", "a:b", "seq:k", "\xff\xfe", "line\nline", "*", string(make255())}
	for _, key := range keys {
		x.send(key, 3, 2, 1)
	}
	for _, key := range keys {
		x.ordered(key, 1, 2, 3)
	}
}

// make255 is a key of the most bytes, of all values but NUL.
func make255() []byte {
	b := make([]byte, 0, zq.MaxKey)
	for i := 1; i <= 255; i++ {
		b = append(b, byte(i))
	}
	return append(b, 'x')
}

func TestUnnumberedMayPass(t *testing.T) {
	t.Parallel()
	x := newTrial(t, zqtest.Shared(t).Client())
	x.start(nil, sequence.PassUnnumbered())
	x.put(zq.Message{ID: "plain"})
	x.put(zq.Message{ID: "keyed", Key: "k"})
	x.put(zq.Message{ID: "bad", Key: "k", Headers: map[string]string{sequence.Header: "one"}})
	x.send("k", 1)
	x.dead("bad " + sequence.ReasonNumber)
	x.over(3)
}

func TestNumbersFromElsewhere(t *testing.T) {
	t.Parallel()
	x := newTrial(t, zqtest.Shared(t).Client())
	x.start(nil, sequence.NumberOf(func(d *zq.Delivery) (int64, error) { return int64(len(d.Body)), nil }))
	for _, body := range []string{"ccc", "a", "bb"} {
		x.put(zq.Message{ID: body, Key: "k", Body: []byte(body)})
	}
	x.eventually(func() bool { return len(x.log("k")) == 3 }, "all ran")
	if got := fmt.Sprint(x.log("k")); got != "[a bb ccc]" {
		t.Errorf("ran %s", got)
	}
}
