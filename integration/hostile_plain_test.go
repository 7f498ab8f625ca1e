package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq"
	zqt "github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// What anybody may put into a queue with ZADD. Each is a message whose id and body are the member.
func plainMembers() map[string]string {
	return map[string]string{
		"empty": "", "one NUL": "\x00", "space": " ", "mark of a message": "\x01", "mark of a plain field": "\x02x",
		"almost a message": "\x0100000000000001;a", "a message without an id": "\x0100000000000001:", "marker only": "w",
		"JSON": `{"id":1,"list":[],"map":{}}`, "bad UTF-8": "\xff\xfe", "every byte": "\x80" + string(everyByte()),
		"1 MiB": strings.Repeat("x", 1<<20), "Lua": "return redis.call('FLUSHALL')", "lines": "\r\nFLUSHALL\r\n", "number": "0", "nil": "nil",
		"bar": "a|b|c", "hundred bytes": strings.Repeat("é", 50),
	}
}

func TestHostilePlainMembers(t *testing.T) {
	t.Parallel()
	for _, set := range []string{"ready", "delayed"} {
		x := newTrial(t)
		got := x.echoes()
		for name, member := range plainMembers() {
			name = set + ", " + name
			x.put(set, 1.5, member)
			d := zqt.Wait(t, got, patience)
			if !d.Plain || d.ID != member || string(d.Body) != member || d.Key != "" || d.Attempt != 1 || !d.EnqueuedAt.IsZero() {
				t.Errorf("%s: %.300q", name, fmt.Sprintf("%+v", d))
			}
			x.settled()
			x.clean(name)
		}
		if c := x.counters(); c.AckedPlain != int64(len(plainMembers())) || c.Acked != 0 || c.Enqueued != 0 {
			t.Errorf("%s: %+v", set, c)
		}
	}
}

// Plain members beside each other in one claim, in the order of their scores, floats and infinities included.
func TestHostilePlainScores(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	scores := []float64{
		math.Inf(-1), -math.MaxFloat64, -1e300, -(1 << 53), -1.5, -1e-300, 0, 5e-324, 1e-300, 0.5, 1, 1.25, 16, 1e15, 1 << 53, 1e300, math.MaxFloat64, math.Inf(1),
	}
	for i := range scores { // the last first, so that nothing but the score can order them
		i = len(scores) - 1 - i
		x.put("ready", scores[i], fmt.Sprintf("m%02d", 99-i))
	}
	var got []string
	all := make(chan struct{})
	x.start(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		if i := len(got); d.Score != scores[i] {
			t.Errorf("place %d has score %v, want %v", i, d.Score, scores[i])
		}
		if got = append(got, d.ID); len(got) == len(scores) {
			close(all)
		}
		return nil
	}), zq.ConsumerConfig{Concurrency: 1})
	zqt.Wait(t, all, patience)
	for i := range scores {
		if want := fmt.Sprintf("m%02d", 99-i); got[i] != want {
			t.Errorf("place %d has %s, want %s", i, got[i], want)
		}
	}
	x.settled()
	x.clean("scores")
}

// ZADD itself refuses what is no number, and takes hexadecimal.
func TestHostileZAddScores(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	for _, score := range []string{"nan", "1e309", "abc", "", " 1"} {
		if err := x.rdb.Do(t.Context(), "ZADD", x.key("ready"), score, "m").Err(); err == nil {
			t.Errorf("ZADD takes a score of %q", score)
		}
	}
	got := x.echoes()
	if err := x.rdb.Do(t.Context(), "ZADD", x.key("ready"), "0x10", "m").Err(); err != nil {
		t.Fatal(err)
	}
	x.put("ready", -1, "first")
	for range 2 {
		if d := zqt.Wait(t, got, patience); d.ID == "m" && d.Score != 16 {
			t.Errorf("score %v, want 16", d.Score)
		}
	}
}

// All plain members at once, with messages among them, in claims together: none is lost for another, whatever
// becomes of it on the way.
func TestHostilePlainMembersTogether(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	want := map[string]int{}
	for _, m := range plainMembers() {
		x.put("ready", 1, m)
		want[m]++
	}
	for i := range 20 {
		id := fmt.Sprintf("message %d", i)
		x.send(zq.Message{ID: id, Key: fmt.Sprint(i % 3), Score: at(1)})
		want[id]++
	}
	seen := make(chan *zq.Delivery, 1000)
	x.start(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
		if d.Attempt < 3 {
			return zq.RetryAfter(time.Duration(d.Attempt)*time.Millisecond, errors.New("once more"))
		}
		seen <- d
		return nil
	}), zq.ConsumerConfig{})
	got := map[string]int{}
	for range want {
		d := zqt.Wait(t, seen, patience)
		if got[d.ID]++; got[d.ID] > 1 || want[d.ID] == 0 {
			t.Errorf("%.40q came %d times", d.ID, got[d.ID])
		}
	}
	x.settled()
	x.over(20, 0)
}

// The whole life of a plain member: it fails, dies, is looked at, replayed and removed like any other.
func TestHostilePlainMemberDies(t *testing.T) {
	t.Parallel()
	for name, member := range plainMembers() {
		if name == "1 MiB" {
			continue // an error names the id, and this one would fill the log
		}
		x := newTrial(t)
		x.put("ready", 2.5, member)
		died := make(chan *zq.Delivery, 10)
		x.start(zq.HandlerFunc(func(_ context.Context, d *zq.Delivery) error {
			died <- d
			return zq.Dead("plain", errors.New("no"))
		}), zq.ConsumerConfig{})
		for life := range 2 {
			if d := zqt.Wait(t, died, patience); d.Replays != life || d.Score != 2.5 {
				t.Errorf("%s: life %d: replays %d, score %v", name, life, d.Replays, d.Score)
			}
			x.settled()
			letters, err := x.look.DeadLetters(t.Context(), time.Time{}, 10)
			if err != nil || len(letters) != 1 || letters[0].Reason != "plain" || letters[0].Score != 2.5 || string(letters[0].Message.Body) != member {
				t.Errorf("%s: %+v, %v", name, letters, err)
			}
			if life == 0 {
				if err := x.look.Replay(t.Context(), member); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
		}
		if err := x.look.RemoveDead(t.Context(), member); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := x.look.Message(t.Context(), member); !errors.Is(err, zq.ErrNotFound) {
			t.Errorf("%s is still known: %v", name, err)
		}
		x.clean(name)
	}
}

// A plain member with the name of a message is another message; so is the same one in two sets.
func TestHostilePlainTwins(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	x.send(zq.Message{ID: "twin", Body: []byte("with an envelope")})
	x.put("ready", 5, "twin")
	x.put("delayed", 7, "twin") // due long ago: joins the one in ready
	x.put("ready", 6, strings.Repeat("0", 3))
	got := x.echoes()
	var bodies []string
	for range 3 {
		bodies = append(bodies, string(zqt.Wait(t, got, patience).Body))
	}
	slices.Sort(bodies)
	if want := []string{"000", "twin", "with an envelope"}; !slices.Equal(bodies, want) {
		t.Errorf("got %q, want %q", bodies, want)
	}
	x.settled()
	x.clean("twins")
	if n := x.rdb.ZCard(t.Context(), x.key("ready")).Val(); n != 0 {
		t.Errorf("%d left in ready", n)
	}
	if c := x.counters(); c.AckedPlain != 2 || c.Acked != 1 {
		t.Errorf("%+v", c)
	}
}

// An entry that stands for a key nobody sent to, and a message that nobody enqueued: the first is passed over,
// the second is a dead letter, and what is real goes on.
func TestHostileForgedMembers(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	forged := "\x01000000000000ff:forged\x00key"
	x.put("ready", 1, "\x00no such key")
	x.put("ready", 2, forged)
	x.must(x.rdb.ZAdd(t.Context(), x.key("lane:key"), redis.Z{Score: 3, Member: "\x0100000000000fff:other\x00key"}).Err())
	x.send(zq.Message{ID: "real", Key: "key"})
	got := x.echoes()
	if d := zqt.Wait(t, got, patience); d.ID != "real" {
		t.Errorf("got %q", d.ID)
	}
	zqt.Eventually(t, patience, func() bool { return x.depth().Dead == 2 }, "both forged messages are dead letters")
	x.settled()
	letters, err := x.look.DeadLetters(t.Context(), time.Time{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range letters {
		if l.Reason != zq.ReasonEnvelope || len(l.Message.Body) > 0 {
			t.Errorf("%+v", l)
		}
	}
	r, err := x.look.Verify(t.Context(), 0)
	if report := fmt.Sprint(r.Problems); err != nil || !strings.Contains(report, "forged") || !strings.Contains(report, "other") {
		t.Errorf("verify names the forged ones: %v, %s", err, report)
	}
	if b, err := json.Marshal(x.depth()); err != nil || x.depth().KeysHeld != 0 {
		t.Errorf("a key is held for ever: %s, %v", b, err)
	}
}
