package script_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

var commandCall = regexp.MustCompile(`redis\.p?call\('([A-Z]+)'`)

// commandsOf lists the Redis commands that a script's text names, each once.
func commandsOf(text string) []string {
	var names []string
	for _, m := range commandCall.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func textOf(set *script.Set, name string) string {
	for _, one := range set.All() {
		if one.Name() == name {
			return one.Text()
		}
	}
	panic("no script " + name)
}

// A user who lacks one command meets an error before the first write, or does not need it for this; what is
// left half done otherwise stands in the list. The check at the start of a consumer runs every script on
// scratch keys, so that it never comes to that.
func TestDamageNoPermission(t *testing.T) {
	t.Parallel()
	server, set := zqtest.Redis(t), virtualSet()
	admin := server.Client()
	clients := map[string]*redis.Client{}
	for _, one := range set.All() {
		for _, name := range commandsOf(one.Text()) {
			if clients[name] == nil {
				clients[name] = without(t, server, admin, name)
			}
		}
	}
	got := map[string]string{}
	for _, c := range scriptCases() {
		reference := freshQueue(t, admin, set)
		if err := c.run(reference, c.lookUp(reference)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		want := mustRead(t, reference)
		var partial []string
		for _, name := range commandsOf(textOf(set, c.script())) {
			if why := runWithout(t, freshQueue(t, admin, set), clients[name], c, want); why != "" {
				partial = append(partial, name+why)
			}
		}
		if len(partial) > 0 {
			got[c.name] = strings.Join(partial, " ")
		}
	}
	if diff := cmp.Diff(partialWithout(), got); diff != "" {
		t.Errorf("left half done without one command (-listed +found):\n%s", diff)
	}
}

func without(t *testing.T, server *zqtest.Server, admin *redis.Client, command string) *redis.Client {
	t.Helper()
	user := "no-" + strings.ToLower(command)
	err := admin.Do(t.Context(), "ACL", "SETUSER", user, "on", "nopass", "~*", "&*", "+@all",
		"-"+strings.ToLower(command)).Err()
	if err != nil {
		t.Fatalf("user %s: %v", user, err)
	}
	return server.Client(func(o *redis.Options) { o.Username, o.Password, o.PoolSize = user, "any", 1 })
}

// runWithout runs a case as a user who lacks a command. It answers "" if that had all of its effect or none
// and said so, "!" if it was left half done with an error, "?" if nobody was told.
func runWithout(t *testing.T, s *store, user *redis.Client, c scriptCase, want view) string {
	t.Helper()
	member, before := c.lookUp(s), s.dump(t)
	err := c.run(s.through(user), member)
	switch {
	case err == nil && cmp.Equal(want, mustRead(t, s)):
		return ""
	case err == nil:
		return "?"
	case !refusedRight(err):
		t.Errorf("%s: want NOPERM, got %v", c.name, err)
	}
	if cmp.Equal(before, s.dump(t)) {
		return ""
	}
	return "!"
}

// partialWithout lists the cases that are left half done by a user without one of these commands.
func partialWithout() map[string]string {
	return map[string]string{
		"checkpoint":                "DEL! HDEL! HINCRBY! HSET! INCRBY! LTRIM! PEXPIRE! RPUSH! SADD! SREM! ZADD! ZRANGE!",
		"claim served":              "DEL! HDEL! HEXISTS! HGET! HINCRBY! HSET! HSETNX! ZADD! ZCARD! ZMPOP!",
		"claim suspect":             "DEL! HDEL! HEXISTS! HGET! HINCRBY! HSET! HSETNX! ZADD! ZCARD!",
		"claim trims":               "DEL! HDEL! HEXISTS! HGET! HINCRBY! HSET! HSETNX! ZADD! ZCARD! ZMPOP!",
		"enqueue batch":             "HINCRBY! ZADD! ZRANGE!",
		"heartbeat all":             "HINCRBY! HSET! ZRANGE!",
		"reap all":                  "DEL! HDEL! HEXISTS! HGET! HINCRBY! HSET! HSETNX! ZADD! ZCARD!",
		"reap buries":               "DEL! HDEL! HEXISTS! HGET! HINCRBY! HSET! HSETNX! ZADD! ZCARD!",
		"remove_dead z1":            "EXISTS! HDEL! HINCRBY!",
		"replay now, keyed":         "HDEL! HINCRBY! ZADD! ZRANGE! ZREM!",
		"replay original":           "HDEL! HINCRBY! ZADD! ZRANGE! ZREM!",
		"resume_key halted":         "ZADD!",
		"settle ack":                "EXISTS! HDEL! HEXISTS! HGET! HINCRBY! ZADD! ZRANGE!",
		"settle ack with":           "DEL! EXISTS! HDEL! HINCRBY! HSET! INCRBY! LTRIM! PEXPIRE! RPUSH! SADD! SET! SREM! ZADD! ZCARD! ZRANGE!",
		"settle ack with, keyed":    "DEL! EXISTS! HDEL! HINCRBY! HSET! INCRBY! LTRIM! PEXPIRE! RPUSH! SADD! SET! SREM! ZADD! ZCARD! ZRANGE!",
		"settle dead":               "EXISTS! HDEL! HSET! ZADD! ZCARD! ZRANGE!",
		"settle dead, key follows":  "EXISTS! HDEL! HSET! HSETNX! ZADD! ZCARD! ZRANGE!",
		"settle dead, key goes on":  "EXISTS! HDEL! HSET! ZADD! ZCARD! ZRANGE!",
		"settle dead, key halts":    "EXISTS! HDEL! HSET! HSETNX! ZADD! ZCARD! ZRANGE!",
		"settle give up":            "EXISTS! ZADD!",
		"settle retry at once":      "EXISTS! HSET! ZADD! ZCARD! ZRANGE!",
		"settle retry later":        "EXISTS! HSET! ZADD! ZCARD! ZRANGE!",
		"settle retry, key blocked": "EXISTS! ZADD! ZCARD!",
		"settle retry, key free":    "EXISTS! HSET! ZADD! ZCARD! ZRANGE!",
		"settle retry, key waits":   "EXISTS! HSET! HSETNX! ZADD! ZCARD! ZRANGE!",
		"settle windowed":           "EXISTS! HDEL! HEXISTS! HINCRBY! HSET! ZADD! ZCARD! ZRANGE!",
	}
}

// refusedRight tells whether a right was missing, in the words of Redis 7.0, of later ones, of Valkey.
func refusedRight(err error) bool {
	return slices.ContainsFunc([]string{"NOPERM", "can't run this command", "has no permissions to run"}, func(words string) bool {
		return strings.Contains(err.Error(), words)
	})
}
