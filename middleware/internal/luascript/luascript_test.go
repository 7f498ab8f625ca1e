package luascript_test

import (
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware/internal/luascript"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

func TestMain(m *testing.M) { os.Exit(zqtest.Main(m)) }

// text also tells apart the calls of a pipeline: one fails, the others do not.
const text = `
-- a comment
local v = redis.call('GET', KEYS[1])

if ARGV[1] == 'bad' then return redis.error_reply('BAD argument') end
return {v or 'none', ARGV[1]}`

func TestScriptIsLoadedWhereItIsUnknown(t *testing.T) {
	t.Parallel()
	rdb := zqtest.Redis(t).Client()
	s := luascript.New("-- first\nlocal unused = 1\n", text)
	calls := []luascript.Call{
		{Keys: []string{"a"}, Args: []any{"1"}}, {Keys: []string{"b"}, Args: []any{"bad"}}, {Keys: []string{"c"}, Args: []any{"3"}},
	}
	for _, state := range []string{"never seen", "known", "flushed"} {
		if state == "flushed" {
			if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		cmds := s.Run(t.Context(), rdb, calls)
		for i, want := range []string{"1", "", "3"} {
			if got, err := cmds[i].StringSlice(); want == "" {
				if err == nil || err.Error() != "BAD argument" {
					t.Errorf("%s, call %d: %v", state, i, err)
				}
			} else if err != nil || len(got) != 2 || got[0] != "none" || got[1] != want {
				t.Errorf("%s, call %d: %q, %v", state, i, got, err)
			}
		}
	}
}

// Without a server each call has an error.
func TestEveryCallHasAnAnswer(t *testing.T) {
	t.Parallel()
	server := zqtest.Redis(t)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	if err := rdb.Close(); err != nil {
		t.Fatal(err)
	}
	s := luascript.New(text)
	for i, cmd := range s.Run(t.Context(), rdb, make([]luascript.Call, 3)) {
		if cmd.Err() == nil {
			t.Errorf("call %d has no error", i)
		}
	}
	if cmds := s.Run(t.Context(), server.Client(), nil); len(cmds) != 0 {
		t.Errorf("%d answers to no call", len(cmds))
	}
}
