package script_test

import (
	"time"

	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// settleCases are all outcomes of messages of the live claim, and a checkpoint.
func settleCases() []scriptCase {
	type lookup = func(string) string
	held := []string{"l1", "a1", "a2"}
	other := func(id string, outcome func(member string) script.Outcome) func(*store, lookup) error {
		return func(s *store, member lookup) error { return s.settle(liveCall(outcome(member(id)))) }
	}
	retry := func(delay time.Duration, charge, block bool) func(string) script.Outcome {
		return func(m string) script.Outcome { return script.Retry(m, delay, charge, block, "failed", "") }
	}
	dead := func(policy string) func(string) script.Outcome {
		return func(m string) script.Outcome { return script.Dead(m, "attempts", "broken", policy, "") }
	}
	with := func(m string) script.Outcome {
		return script.AckWith(m, time.Hour, everyEffect(), placements(1, "f1", "f2 a", "f3 new"))
	}
	return []scriptCase{
		{name: "settle ack", needs: held, run: func(s *store, member lookup) error {
			return s.settle(&script.SettleCall{CID: cidLive, Acks: []string{member("l1"), member("a1"), member("a2")}})
		}},
		{name: "settle windowed", needs: held, run: func(s *store, member lookup) error {
			return s.settle(&script.SettleCall{CID: cidLive, Windowed: []script.Window{{Member: member("a1"), Keep: time.Hour}}})
		}},
		{name: "settle ack with", needs: held, run: other("l1", with)},
		{name: "settle ack with, keyed", needs: held, run: other("a1", with)},
		{name: "settle retry at once", needs: held, run: other("l1", retry(0, true, false))},
		{name: "settle retry later", needs: held, run: other("l1", retry(time.Second, true, false))},
		{name: "settle retry, key waits", needs: held, run: other("a1", retry(time.Second, true, true))},
		{name: "settle retry, key blocked", needs: held, run: other("a1", retry(0, false, true))},
		{name: "settle retry, key free", needs: held, run: other("a1", retry(time.Second, true, false))},
		{name: "settle dead", needs: held, run: other("l1", dead("continue"))},
		{name: "settle dead, key goes on", needs: held, run: other("a1", dead("continue"))},
		{name: "settle dead, key halts", needs: held, run: other("a1", dead("halt"))},
		{name: "settle dead, key follows", needs: held, run: other("a1", dead("key"))},
		{name: "settle give up", run: func(s *store, _ lookup) error {
			call := liveCall()
			call.GiveUp = true
			return s.settle(call)
		}},
		{name: "settle stale", needs: []string{"y1"}, run: func(s *store, member lookup) error {
			call := liveCall(script.Dead(member("y1"), "attempts", "broken", "halt", ""))
			call.CID, call.Acks = cidOver, []string{member("y1")}
			_, err := s.set.Settle(s.ctx, s.run, s.names, call)
			return err
		}},
		{name: "checkpoint", needs: held, run: func(s *store, member lookup) error {
			_, err := s.set.Checkpoint(s.ctx, s.run, s.names, "token", cidLive, member("l1"), everyEffect())
			return err
		}},
	}
}

func liveCall(others ...script.Outcome) *script.SettleCall {
	return &script.SettleCall{CID: cidLive, Others: others, DeadKeep: time.Hour, DeadMax: 100}
}

// everyEffect has each verb and each precondition once.
func everyEffect() []script.Effect {
	effect := func(name, verb string, args ...any) script.Effect {
		return script.Effect{Name: name, Verb: verb, Args: args}
	}
	return []script.Effect{
		effect("text", "exists"), effect("text", "equals", "word"), effect("text", "set", "other"),
		effect("none", "absent"), effect("number", "incrby", 5), effect("number", "pexpire", 3_600_000),
		effect("hash", "hequals", "f", "1"), effect("hash", "habsent", "g"), effect("hash", "hset", "g", "2"),
		effect("hash", "hincrby", "n", 3), effect("hash", "hdel", "f"), effect("set", "sadd", "x", "y"),
		effect("set", "srem", "x"), effect("zset", "zadd", "1.5", "x", "2", "y"), effect("zset", "zrem", "x"),
		effect("list", "length", 0), effect("list", "rpush", "x", "y"), effect("list", "ltrim", 1, 1),
		effect("old", "del"),
	}
}
