package script_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

func sharedClient(t *testing.T) *redis.Client {
	t.Helper()
	return zqtest.Shared(t).Client()
}

var (
	luaToken  = regexp.MustCompile(`'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|--[^\n]*|[A-Za-z_][A-Za-z0-9_]*|[.:]|\.\.\.?|\S`)
	luaLocals = regexp.MustCompile(`local ([A-Za-z0-9_, ]+?)(?: =|$|\n)|(?:local )?function ?([a-z_0-9]*)\(([a-z0-9_, ]*)\)|for ([a-z0-9_, ]+)(?: =| in)`)
	luaName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func builtins() map[string]bool {
	known := map[string]bool{}
	for _, word := range strings.Fields(`and break do else elseif end false for function if in local nil not or repeat
		return then true until while redis KEYS ARGV string table math tonumber type unpack ipairs pairs error`) {
		known[word] = true
	}
	return known
}

// globals lists the names that a text uses without making them local before. Redis refuses those when the
// line runs, which may be when a write has been made.
func globals(text string) []string {
	known, found := builtins(), []string(nil)
	for line := range strings.Lines(text) {
		for _, m := range luaLocals.FindAllStringSubmatch(line, -1) {
			for _, group := range m[1:] {
				for name := range strings.SplitSeq(group, ",") {
					known[strings.TrimSpace(name)] = true
				}
			}
		}
		tokens := luaToken.FindAllString(line, -1)
		for i, token := range tokens {
			member := i > 0 && (tokens[i-1] == "." || tokens[i-1] == ":")
			field := i+1 < len(tokens) && tokens[i+1] == "=" && !(i+2 < len(tokens) && tokens[i+2] == "=")
			if luaName.MatchString(token) && !known[token] && !member && !field {
				found = append(found, token)
			}
		}
	}
	return found
}

// notReached says which scripts include a function that names something they lack, and never call it.
func notReached() map[string][]string {
	return map[string][]string{
		// Of lane they call lane_head only.
		"depth": {"bury", "read_record"}, "keys": {"bury", "read_record"}, "verify": {"bury"},
	}
}

// Every fragment that a script asks for exists, comes after what it needs, and is needed.
func TestLintFragments(t *testing.T) {
	t.Parallel()
	files, used := luaFiles(t), map[string]bool{}
	for _, one := range script.New().All() {
		want(t, one.Name()+" uses names that are not there", notReached()[one.Name()], globals(one.Text()))
		fragments := fragmentsOf(files[one.Name()].text)
		for i, name := range fragments {
			used[name] = true
			f, ok := files["lib/"+name]
			if !ok {
				t.Errorf("%s uses the fragment %s, which does not exist", one.Name(), name)
				continue
			}
			rest := files[one.Name()].body
			for _, later := range fragments[i+1:] {
				rest += files["lib/"+later].body
			}
			if !mentions(rest, definedIn(f.body)) {
				t.Errorf("%s includes the fragment %s for nothing", one.Name(), name)
			}
		}
	}
	for key, f := range files {
		if f.lib && !used[f.name] {
			t.Errorf("nobody uses %s", key)
		}
	}
}

func fragmentsOf(text string) []string {
	for line := range strings.Lines(text) {
		if list, ok := strings.CutPrefix(line, "--@use "); ok {
			return strings.Fields(list)
		}
	}
	return nil
}

var topLevel = regexp.MustCompile(`(?m)^local (?:function )?([A-Za-z_]+)`)

func definedIn(body string) []string {
	var names []string
	for _, m := range topLevel.FindAllStringSubmatch(body, -1) {
		names = append(names, m[1])
	}
	return names
}

func mentions(text string, names []string) bool {
	for _, name := range names {
		if regexp.MustCompile(`\b` + name + `\b`).MatchString(text) {
			return true
		}
	}
	return false
}

func TestLintGlobalsCatches(t *testing.T) {
	t.Parallel()
	text := "local a, b = 1\nlocal function f(x, y)\n  for i, v in pairs(x) do a = z + v end\n  return g(y.h, { k = 1 })\nend\n"
	want(t, "globals", []string{"z", "g"}, globals(text))
}

var operand = regexp.MustCompile(`(?:('(?:\\.|[^'\\])*'|[A-Za-z_][\w.]*(?:\[[^\]]*\]|\([^()]*(?:\([^()]*\)[^()]*)*\))?|\)) )?\.\. ('|[A-Za-z_][\w.]*(?:\[[^\]]*\](?:\.\w+)?|\([^()]*(?:\([^()]*\)[^()]*)*\))?)`)

// joined says of everything that is put into a string why it is a string already. Lua writes a number with 14
// digits there, which cuts a score or a sequence short.
func joined() map[string]string {
	return map[string]string{
		"prefix": "the lanes' prefix, an argument", "claims": "the claims' prefix, an argument",
		"key": "an ordering key", "name": "an ordering key or an effect's name",
		"keys[i]": "an ordering key", "names[i]": "an ordering key", "freed[i]": "an ordering key",
		"all[i]": "an ordering key", "id": "a message's id", "m": "a member",
		"over[i]": "a claim's id", "cid": "a claim's id", "claims[i]": "a claim's id", "owner": "a lock's owner",
		"hex": "formatted with %014x", "KEYS[i]": "a key's name", "ARGV[1]": "a prefix, an argument",
		"ARGV[3]": "an argument", "ARGV[p + 4]": "an envelope, an argument", "got": "what TYPE answers",
		"types[i]": "a literal of the guard", "outcome": "text that the script made", "layout": "a field of meta", "reason": "text", "err": "text",
		"epoch": "a field of meta", "partitions": "a field of meta", "label": "an argument", "string.sub(stats, 1, -6)": "a key's name",
		"string.sub(name, 1, 1)": "a letter",
		"r.err":                  "text", "plan.states": "letters, concatenated", "list[i].name": "an effect's name",
		"text": "what verify says", "where": "a place's name", "place[member]": "a place's name",
		"head_of_envelope(hex, key)":                    "bytes",
		"locate(k, prefix, member_of(field, envelope))": "a letter",
		// Small counts, for people; fourteen digits are more than enough.
		"waiting": "a count", "has": "a count", "lock.claimed": "a count",
	}
}

func TestLintJoinedStrings(t *testing.T) {
	t.Parallel()
	fine := regexp.MustCompile(`^(?:'.*|string\.(?:format|char)\(.*|show\(.*|\))$`)
	seen := map[string]bool{}
	for _, f := range luaFiles(t) {
		for line := range strings.Lines(f.body) {
			for _, m := range operand.FindAllStringSubmatch(line, -1) {
				for _, one := range m[1:] {
					if one == "" || fine.MatchString(one) {
						continue
					}
					seen[one] = true
					if joined()[one] == "" {
						t.Errorf("%s joins %s: is it a string? %s", f.path, one, strings.TrimSpace(line))
					}
				}
			}
			if joins := strings.Count(line, " .. "); joins != len(operand.FindAllString(line, -1)) && !strings.Contains(line, "...") {
				t.Errorf("%s: not all of this was looked at: %s", f.path, strings.TrimSpace(line))
			}
		}
	}
	for one := range joined() {
		if !seen[one] {
			t.Errorf("%s is allowed, but nobody joins it", one)
		}
	}
}
