// Package script holds the Lua scripts of a queue, one operation a file, and one typed Go call for each.
// Nothing else runs them.
package script

import (
	"context"
	"crypto/sha1" //nolint:gosec // Redis names scripts by their SHA-1; it protects nothing.
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua lua/lib/*.lua
var sources embed.FS

// Layout is the version of what these scripts keep in the store; lua/lib/guard.lua has it too.
const Layout = 1

// Script is one operation, ready to run.
type Script struct {
	name, text, sha string
}

// Set is all scripts of one layout. It is immutable and safe for concurrent use.
type Set struct {
	enqueue, claim, settle, heartbeat, reap, checkpoint Script
	pause, resumeKey, replay, removeDead                Script
	find, depth, verify, keys                           Script
}

// New assembles the scripts from their files. It panics if one is missing, which only a broken build can cause.
func New() *Set { return assemble(sources, nil) }

// WithClock assembles the scripts with another body for the library fragment "clock", for tests that move
// time. The fragment must define clock().
func WithClock(lua string) *Set { return assemble(sources, map[string]string{"clock": lua}) }

func assemble(files fs.FS, overlay map[string]string) *Set {
	load := func(name string) Script { return build(files, name, overlay) }
	return &Set{
		enqueue: load("enqueue"), claim: load("claim"), settle: load("settle"), heartbeat: load("heartbeat"),
		reap: load("reap"), checkpoint: load("checkpoint"), pause: load("pause"), resumeKey: load("resume_key"),
		replay: load("replay"), removeDead: load("remove_dead"), find: load("find"), depth: load("depth"),
		verify: load("verify"), keys: load("keys"),
	}
}

// All lists the scripts of the set by name, for loading and for tests.
func (s *Set) All() []Script {
	return []Script{
		s.enqueue, s.claim, s.settle, s.heartbeat, s.reap, s.checkpoint, s.pause, s.resumeKey, s.replay,
		s.removeDead, s.find, s.depth, s.verify, s.keys,
	}
}

// Name is the script's file without its ending, SHA the name Redis gives it, Text what it is sent as.
func (s Script) Name() string { return s.name }

// SHA is the SHA-1 of the text in hex, by which EVALSHA names it.
func (s Script) SHA() string { return s.sha }

// Text is the script with its library fragments in front.
func (s Script) Text() string { return s.text }

func build(files fs.FS, name string, overlay map[string]string) Script {
	body := mustRead(files, "lua/"+name+".lua")
	var text strings.Builder
	for _, fragment := range fragments(body) {
		lib, ok := overlay[fragment]
		if !ok {
			lib = mustRead(files, "lua/lib/"+fragment+".lua")
		}
		text.WriteString(withoutComments(lib))
	}
	text.WriteString(withoutComments(body))
	sum := sha1.Sum([]byte(text.String())) //nolint:gosec // see the import
	return Script{name: name, text: text.String(), sha: hex.EncodeToString(sum[:])}
}

// fragments reads the line "--@use a b c" of a script.
func fragments(body string) []string {
	for line := range strings.Lines(body) {
		if list, ok := strings.CutPrefix(line, "--@use "); ok {
			return strings.Fields(list)
		}
	}
	return nil
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

func mustRead(files fs.FS, path string) string {
	b, err := fs.ReadFile(files, path)
	if err != nil {
		panic(fmt.Sprintf("zq: script file missing from the build: %v", err))
	}
	return string(b)
}

// Run is what a script needs of a client; pipelines and all go-redis clients have it.
type Run interface {
	EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd
	Eval(ctx context.Context, text string, keys []string, args ...any) *redis.Cmd
}

// run sends EVALSHA, and the text itself when the server does not know it (restart, failover, SCRIPT FLUSH).
func (s Script) run(ctx context.Context, c Run, keys []string, args []any) (any, error) {
	reply, err := c.EvalSha(ctx, s.sha, keys, args...).Result()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = c.Eval(ctx, s.text, keys, args...).Result()
	}
	if err != nil {
		return nil, fmt.Errorf("script %s: %w", s.name, err)
	}
	return reply, nil
}

// Load sends the texts of all scripts, so that the first calls need not.
func (s *Set) Load(ctx context.Context, c redis.Scripter) error {
	for _, one := range s.All() {
		if err := c.ScriptLoad(ctx, one.text).Err(); err != nil {
			return fmt.Errorf("load script %s: %w", one.name, err)
		}
	}
	return nil
}
