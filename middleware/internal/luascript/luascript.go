// Package luascript runs Lua scripts of the middleware, many calls in one pipeline.
package luascript

import (
	"context"
	"crypto/sha1" //nolint:gosec // Redis names scripts by their SHA-1; it protects nothing.
	"encoding/hex"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Script is one operation, ready to run. It is safe for concurrent use.
type Script struct{ text, sha string }

// New makes a script of parts that stand one behind the other. Comment lines are left out.
func New(parts ...string) Script {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(withoutComments(p))
	}
	sum := sha1.Sum([]byte(b.String())) //nolint:gosec // see the import
	return Script{text: b.String(), sha: hex.EncodeToString(sum[:])}
}

// withoutComments drops comment lines and blank ones: Redis keeps every script's text for good.
func withoutComments(lua string) string {
	var b strings.Builder
	for line := range strings.Lines(lua) {
		if t := strings.TrimSpace(line); t != "" && !strings.HasPrefix(t, "--") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// Call is one call of a script, on keys of one slot.
type Call struct {
	Keys []string
	Args []any
}

// Run makes all calls in one pipeline, and those that the server does not know the script for (restart, failover,
// SCRIPT FLUSH) once more with its text: go-redis does not do that in a pipeline. Each command has an answer or an
// error.
func (s Script) Run(ctx context.Context, rdb redis.UniversalClient, calls []Call) []*redis.Cmd {
	cmds := send(ctx, rdb, calls, func(p redis.Pipeliner, c Call) *redis.Cmd {
		return p.EvalSha(ctx, s.sha, c.Keys, c.Args...)
	})
	var unknown []Call
	var places []int
	for i, cmd := range cmds {
		if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			unknown, places = append(unknown, calls[i]), append(places, i)
		}
	}
	if len(unknown) == 0 {
		return cmds
	}
	again := send(ctx, rdb, unknown, func(p redis.Pipeliner, c Call) *redis.Cmd {
		return p.Eval(ctx, s.text, c.Keys, c.Args...)
	})
	for i, place := range places {
		cmds[place] = again[i]
	}
	return cmds
}

func send(
	ctx context.Context, rdb redis.UniversalClient, calls []Call, queue func(redis.Pipeliner, Call) *redis.Cmd,
) []*redis.Cmd {
	pipe := rdb.Pipeline()
	cmds := make([]*redis.Cmd, len(calls))
	for i, c := range calls {
		cmds[i] = queue(pipe, c)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		for _, cmd := range cmds {
			if cmd.Err() == nil && cmd.Val() == nil { // a pipeline that was never sent
				cmd.SetErr(err)
			}
		}
	}
	return cmds
}
