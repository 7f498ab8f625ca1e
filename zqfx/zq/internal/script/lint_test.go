package script_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// luaFile is a file under lua/; body is it without comments.
type luaFile struct {
	path, name, text, body string
	lib                    bool
}

func luaFiles(t *testing.T) map[string]luaFile {
	t.Helper()
	files := map[string]luaFile{}
	for _, pattern := range []string{"lua/*.lua", "lua/lib/*.lua"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) < 10 {
			t.Fatalf("%s: %d files: a check of nothing passes: %v", pattern, len(paths), err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			f := luaFile{
				path: path, name: strings.TrimSuffix(filepath.Base(path), ".lua"), text: string(text),
				body: withoutComments(string(text)), lib: strings.Contains(path, "/lib/"),
			}
			key := f.name
			if f.lib {
				key = "lib/" + f.name
			}
			files[key] = f
		}
	}
	return files
}

func withoutComments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "--") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func head(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "--") || strings.HasPrefix(line, "--@") {
			break
		}
		b.WriteString(line)
	}
	return b.String()
}

// The head of each script says what it takes, answers, costs and keeps.
func TestLintHeads(t *testing.T) {
	t.Parallel()
	for _, f := range luaFiles(t) {
		head := head(f.text)
		if f.lib {
			if head == "" {
				t.Errorf("%s has no head comment", f.path)
			}
			continue
		}
		if !strings.HasPrefix(head, "-- "+f.name+": ") {
			t.Errorf("%s does not start with its name", f.path)
		}
		for _, word := range []string{"KEYS  ", "ARGV  ", "reply ", "cost  "} {
			if !strings.Contains(head, word) {
				t.Errorf("%s: the head does not say %q", f.path, word)
			}
		}
		if !strings.Contains(head, "invariant: ") && !strings.Contains(head, "changes nothing") {
			t.Errorf("%s: the head names no invariant", f.path)
		}
	}
}

// Hosted proxies refuse command names that are computed, and a name in a variable hides from the ACL page.
func TestLintCommandsAreLiteral(t *testing.T) {
	t.Parallel()
	call := regexp.MustCompile(`redis\s*(\.|\[)\s*['"]?p?call\b['"]?\]?`)
	literal := regexp.MustCompile(`redis\.p?call\('[A-Z]+'[,)]`)
	for _, f := range luaFiles(t) {
		if all, good := len(call.FindAllString(f.body, -1)), len(literal.FindAllString(f.body, -1)); all != good {
			t.Errorf("%s: %d calls, %d with a literal name", f.path, all, good)
		}
	}
}

// What has bitten others: numbers as short strings, payloads through a codec, and whatever is not the same on
// a replica or the embedded Redis.
func TestLintBannedWords(t *testing.T) {
	t.Parallel()
	banned := regexp.MustCompile(`\b(tostring|cjson|cmsgpack|struct|bit|loadstring|load|dofile|setmetatable|rawset|_G|os|random|replicate_commands|setresp)\b\s*[.(]`)
	for _, f := range luaFiles(t) {
		for _, word := range banned.FindAllString(f.body, -1) {
			t.Errorf("%s uses %s", f.path, word)
		}
	}
}

// unpackAllowed says why an unpack outside lib/bulk.lua is short.
func unpackAllowed() map[string]string {
	return map[string]string{
		"lib/effects": "package effect allows a thousand arguments",
		"lib/ops":     "four tokens a call",
		"lib/reap":    "a hundred tombstones a call",
	}
}

func TestLintUnpackIsBounded(t *testing.T) {
	t.Parallel()
	for key, f := range luaFiles(t) {
		uses := strings.Count(f.body, "unpack(")
		chunked := strings.Count(f.body, "math.min(i + CHUNK - 1, ")
		_, allowed := unpackAllowed()[key]
		if uses != chunked && !allowed {
			t.Errorf("%s unpacks without a bound", f.path)
		}
		if allowed && uses == 0 {
			t.Errorf("%s is allowed to unpack, but does not", f.path)
		}
	}
}

var (
	keyIndex  = regexp.MustCompile(`KEYS\[(\d+)\]`)
	guardList = regexp.MustCompile(`guard\(\{([^}]*)\}\)`)
	keysHead  = regexp.MustCompile(`(?m)^-- KEYS  (.*?(?:\n--       .*)*)(?:      ARGV.*)?$`)
)

// Every key that a script touches is named in its head, checked by its guard and sent by its Go call.
func TestLintKeysAreGuarded(t *testing.T) {
	t.Parallel()
	s := newStore(t.Context(), nil, virtualSet(), "lint")
	sent := map[string]int{}
	for _, c := range scriptCases() {
		var spy keysOf
		_ = c.run(s.through(&spy), func(id string) string { return id }) // the spy runs nothing
		sent[c.script()] = len(spy.names)
	}
	for _, f := range luaFiles(t) {
		if f.lib {
			continue
		}
		guards := guardList.FindStringSubmatch(f.body)
		named := keysHead.FindStringSubmatch(f.text)
		if guards == nil || named == nil {
			t.Errorf("%s has no guard or no KEYS in its head", f.path)
			continue
		}
		used, highest := map[int]bool{}, 0
		for _, m := range keyIndex.FindAllStringSubmatch(f.body, -1) {
			i, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			used[i] = true
			highest = max(highest, i)
		}
		guarded := len(strings.Split(guards[1], ","))
		if n := len(strings.Fields(strings.ReplaceAll(named[1], "\n--", ""))); n != guarded || sent[f.name] != guarded || highest > guarded {
			t.Errorf("%s: %d keys in the head, %d guarded, %d sent, KEYS[%d] used", f.path, n, guarded, sent[f.name], highest)
		}
		for i := 1; i <= guarded; i++ {
			if !used[i] && f.name != "verify" { // which has the keys that repair will mend
				t.Errorf("%s: KEYS[%d] is not used", f.path, i)
			}
		}
	}
}

// goldenCommands is every command that a user of the library needs the right to; the ACL page is made of it.
func goldenCommands() []string {
	return []string{
		"DEL", "EXISTS", "GET", "HDEL", "HEXISTS", "HGET", "HGETALL", "HINCRBY", "HKEYS", "HLEN", "HMGET", "HSCAN", "HSET", "HSETNX",
		"HVALS", "INCRBY", "LLEN", "LTRIM", "PEXPIRE", "RPUSH", "SADD", "SET", "SREM", "TIME", "TYPE", "ZADD", "ZCARD",
		"ZMPOP", "ZMSCORE", "ZRANGE", "ZREM", "ZSCORE",
	}
}

func TestLintCommands(t *testing.T) {
	t.Parallel()
	var all []string
	for _, f := range luaFiles(t) {
		all = append(all, commandsOf(f.body)...)
	}
	slices.Sort(all)
	want(t, "commands", goldenCommands(), slices.Compact(all))
}

// Each script runs once with something to do: a function that was not included would be an error.
func TestLintScriptsRun(t *testing.T) {
	t.Parallel()
	rdb, set := sharedClient(t), virtualSet()
	ran := map[string]bool{}
	for _, c := range scriptCases() {
		s := freshQueue(t, rdb, set)
		if err := c.run(s, c.lookUp(s)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		ran[c.script()] = true
	}
	for _, one := range set.All() {
		if !ran[one.Name()] {
			t.Errorf("no case runs %s", one.Name())
		}
	}
}
