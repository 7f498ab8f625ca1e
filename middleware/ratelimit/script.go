package ratelimit

import (
	"context"
	"crypto/sha1" //nolint:gosec // Redis names scripts by their SHA-1; it protects nothing.
	_ "embed"
	"encoding/hex"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/reserve.lua
var reserveText string

// script is one operation, ready to run.
type script struct{ text, sha string }

func newScript(body string) script {
	text := withoutComments(body)
	sum := sha1.Sum([]byte(text)) //nolint:gosec // see the import
	return script{text: text, sha: hex.EncodeToString(sum[:])}
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

// scriptCall is one call of a script.
type scriptCall struct {
	keys []string
	args []any
}

// run makes all calls in one pipeline, and those that the server does not know the script for (restart, failover,
// SCRIPT FLUSH) once more with its text: go-redis does not do that in a pipeline.
func (s script) run(ctx context.Context, rdb redis.UniversalClient, calls []scriptCall) []*redis.Cmd {
	cmds := send(ctx, rdb, calls, func(p redis.Pipeliner, c scriptCall) *redis.Cmd {
		return p.EvalSha(ctx, s.sha, c.keys, c.args...)
	})
	var unknown []scriptCall
	var places []int
	for i, cmd := range cmds {
		if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			unknown, places = append(unknown, calls[i]), append(places, i)
		}
	}
	if len(unknown) == 0 {
		return cmds
	}
	again := send(ctx, rdb, unknown, func(p redis.Pipeliner, c scriptCall) *redis.Cmd {
		return p.Eval(ctx, s.text, c.keys, c.args...)
	})
	for i, place := range places {
		cmds[place] = again[i]
	}
	return cmds
}

func send(
	ctx context.Context, rdb redis.UniversalClient, calls []scriptCall, queue func(redis.Pipeliner, scriptCall) *redis.Cmd,
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
