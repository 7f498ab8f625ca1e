package zq

import (
	"time"

	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// What the tests of this package need of its inside: the pure parts that no Redis and no clock can drive to
// every corner.

// Clip and ErrorText are how text is cut to what is stored.
var (
	Clip      = clip
	ErrorText = errorText
)

// Judgement is decide's answer in words.
type Judgement struct {
	Verdict string
	Delay   time.Duration
	Reason  string
	Err     error
}

// Decide reads a handler's result for a delivery, under a policy of maxAttempts and delay.
func Decide(
	d *Delivery, err, cause error, maxAttempts int, delay func(*Delivery, error) time.Duration,
) Judgement {
	got := decide(d, err, cause, rules{maxAttempts: maxAttempts, delay: delay})
	words := map[verdict]string{ack: "ack", retry: "retry", wait: "wait", aside: "aside", release: "release", bury: "bury", drop: "drop"}
	return Judgement{Verdict: words[got.verdict], Delay: got.delay, Reason: got.reason, Err: got.err}
}

// InHand is what load knows of a process.
type InHand struct {
	Busy, Units, Messages, BodyMean int
	RunMean                         time.Duration
}

// Wanted is an order to the claim script.
type Wanted struct{ Entries, Messages, PerKey int }

// Want says what load claims in that situation, with a configuration after its defaults.
func Want(cfg ConsumerConfig, in InHand) Wanted {
	cfg = cfg.withDefaults()
	var l load
	l.busy.Store(int64(in.Busy))
	l.units.Store(int64(in.Units))
	l.messages.Store(int64(in.Messages))
	l.body.Store(int64(in.BodyMean))
	l.mean.Store(int64(in.RunMean))
	got := l.want(&cfg)
	return Wanted{Entries: got.entries, Messages: got.messages, PerKey: got.perKey}
}

// Units groups members as a claim's messages are grouped: each group is a key and its members.
func Units(members ...string) (keys []string, groups [][]string) {
	taken := make([]script.Taken, len(members))
	for i, m := range members {
		taken[i].Member = m
	}
	for _, u := range units(nil, taken) {
		var group []string
		for i := range u.msgs {
			group = append(group, u.msgs[i].Member)
		}
		keys, groups = append(keys, u.key), append(groups, group)
	}
	return keys, groups
}

// Blend is how a mean follows its values.
var Blend = blend
