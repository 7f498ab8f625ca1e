package effect_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq/effect"
)

func TestVerbs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		e    effect.Effect
		verb string
		args []string
	}{
		{effect.Set("n", "v"), "set", []string{"v"}},
		{effect.Set("n", ""), "set", []string{""}},
		{effect.Del("n"), "del", nil},
		{effect.Expire("n", 1500*time.Millisecond), "pexpire", []string{"1500"}},
		{effect.Expire("n", time.Millisecond), "pexpire", []string{"1"}},
		{effect.IncrBy("n", -7), "incrby", []string{"-7"}},
		{effect.IncrBy("n", 1<<53-1), "incrby", []string{"9007199254740991"}},
		{effect.IncrBy("n", 1-1<<53), "incrby", []string{"-9007199254740991"}},
		{effect.HSet("n", "f", "v"), "hset", []string{"f", "v"}},
		{effect.HDel("n", "f", "g"), "hdel", []string{"f", "g"}},
		{effect.HIncrBy("n", "f", 7), "hincrby", []string{"f", "7"}},
		{effect.SAdd("n", "a", "b"), "sadd", []string{"a", "b"}},
		{effect.SRem("n", "a"), "srem", []string{"a"}},
		{effect.ZAdd("n", 1.5, "m"), "zadd", []string{"1.5", "m"}},
		{effect.ZAdd("n", 1<<53-1, "m"), "zadd", []string{"9007199254740991", "m"}},
		{effect.ZAdd("n", math.Copysign(0, -1), ""), "zadd", []string{"-0", ""}},
		{effect.ZRem("n", "m"), "zrem", []string{"m"}},
		{effect.RPush("n", "a", "a"), "rpush", []string{"a", "a"}},
		{effect.LTrim("n", -100, -1), "ltrim", []string{"-100", "-1"}},
		{effect.IfAbsent("n"), "absent", nil},
		{effect.IfExists("n"), "exists", nil},
		{effect.IfEquals("n", "v"), "equals", []string{"v"}},
		{effect.IfField("n", "f", "v"), "hequals", []string{"f", "v"}},
		{effect.IfNoField("n", "f"), "habsent", []string{"f"}},
		{effect.IfLength("n", 3), "length", []string{"3"}},
		{effect.SAdd("n", make([]string, effect.MaxArgs)...), "sadd", make([]string, effect.MaxArgs)},
		{effect.Set("n", "\x00\xff"), "set", []string{"\x00\xff"}},
	} {
		if c.e.Name() != "n" || c.e.Verb() != c.verb || !slices.Equal(c.e.Args(), c.args) {
			t.Errorf("%s: %s %q", c.e, c.e.Verb(), c.e.Args())
		}
		if fault := c.e.Fault(); fault != "" {
			t.Errorf("%s: %s", c.e, fault)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	many := make([]string, effect.MaxArgs+1)
	for name, e := range map[string]effect.Effect{
		"zero value":       {},
		"no name":          effect.Set("", "v"),
		"name with NUL":    effect.Del("a\x00"),
		"name too long":    effect.Del(strings.Repeat("n", effect.MaxName+1)),
		"life of nothing":  effect.Expire("n", 0),
		"negative life":    effect.Expire("n", -time.Second),
		"life of 999 µs":   effect.Expire("n", 999*time.Microsecond),
		"too much":         effect.IncrBy("n", 1<<53),
		"too little":       effect.IncrBy("n", -1<<53),
		"MinInt64":         effect.HIncrBy("n", "f", math.MinInt64),
		"MaxInt64":         effect.HIncrBy("n", "f", math.MaxInt64),
		"NaN":              effect.ZAdd("n", math.NaN(), "m"),
		"infinite":         effect.ZAdd("n", math.Inf(1), "m"),
		"minus infinite":   effect.ZAdd("n", math.Inf(-1), "m"),
		"no fields":        effect.HDel("n"),
		"no members":       effect.SAdd("n"),
		"nothing removed":  effect.SRem("n"),
		"no sorted member": effect.ZRem("n"),
		"no values":        effect.RPush("n"),
		"too many fields":  effect.HDel("n", many...),
		"too many members": effect.SAdd("n", many...),
		"too many removed": effect.SRem("n", many...),
		"too many sorted":  effect.ZRem("n", many...),
		"too many values":  effect.RPush("n", many...),
	} {
		if e.Fault() == "" {
			t.Errorf("%s: %s is taken", name, e)
		}
	}
	if e := effect.Del(strings.Repeat("n", effect.MaxName)); e.Fault() != "" {
		t.Errorf("the longest name: %s", e.Fault())
	}
}

func TestListFault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		bad  bool
		list []effect.Effect
	}{
		{"nothing", false, nil},
		{"different keys", false, []effect.Effect{effect.Set("a", "1"), effect.HSet("b", "f", "1"), effect.RPush("c", "1")}},
		{"as many as may be", false, make([]effect.Effect, effect.MaxList)},
		{"too many", true, make([]effect.Effect, effect.MaxList+1)},
		{"one key, one type", false, []effect.Effect{effect.HSet("a", "f", "1"), effect.HDel("a", "g"), effect.IfField("a", "f", "0")}},
		{"one key, two types", true, []effect.Effect{effect.HSet("a", "f", "1"), effect.SAdd("a", "m")}},
		{"a check of another type", true, []effect.Effect{effect.IfEquals("a", "1"), effect.RPush("a", "1")}},
		{"a check of no type", false, []effect.Effect{effect.IfExists("a"), effect.RPush("a", "1"), effect.Expire("a", time.Second)}},
		{"a string is no set", true, []effect.Effect{effect.Set("a", "1"), effect.ZAdd("a", 1, "m")}},
		{"two writes of a string", false, []effect.Effect{effect.Set("a", "1"), effect.Set("a", "2")}},
		{"one sum", false, []effect.Effect{effect.IncrBy("a", 1), effect.IfEquals("a", "1"), effect.Expire("a", time.Second)}},
		{"two sums on a number", true, []effect.Effect{effect.IncrBy("a", 1), effect.IncrBy("a", 1)}},
		{"a sum on what was set", true, []effect.Effect{effect.Set("a", "x"), effect.IncrBy("a", 1)}},
		{"a sum, then set", true, []effect.Effect{effect.IncrBy("a", 1), effect.Set("a", "x")}},
		{"a sum on what was removed", true, []effect.Effect{effect.Del("a"), effect.IncrBy("a", 1)}},
		{"sums on two fields", false, []effect.Effect{effect.HIncrBy("a", "f", 1), effect.HIncrBy("a", "g", 1)}},
		{"sums on one field", true, []effect.Effect{effect.HIncrBy("a", "f", 1), effect.HIncrBy("a", "f", 1)}},
		{"a sum and another field", false, []effect.Effect{effect.HIncrBy("a", "f", 1), effect.HSet("a", "g", "x")}},
		{"a sum on a field that was set", true, []effect.Effect{effect.HSet("a", "f", "x"), effect.HIncrBy("a", "f", 1)}},
		{"a sum on a field, others removed", true, []effect.Effect{effect.HIncrBy("a", "f", 1), effect.HDel("a", "g")}},
		{"a sum on a hash that was removed", true, []effect.Effect{effect.Del("a"), effect.HIncrBy("a", "f", 1)}},
		{"two sums on two names", false, []effect.Effect{effect.IncrBy("a", 1), effect.IncrBy("b", 1)}},
	} {
		if got := effect.ListFault(c.list); (got != "") != c.bad {
			t.Errorf("%s: fault %q", c.name, got)
		}
	}
}
