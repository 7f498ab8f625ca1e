package script_test

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// olderCall is how an older library makes a call: with the first keys of the present one, without some arguments; its
// reply is read as the present one.
type olderCall struct {
	keys  int
	args  func(args []any) []any
	reply func(v any) any
}

func asItIs[T any](v T) T { return v }

func olderCalls() map[string]olderCall {
	without := func(i, n int) func([]any) []any {
		return func(args []any) []any { return slices.Delete(slices.Clone(args), i, i+n) }
	}
	first := func(n int) func([]any) []any {
		return func(args []any) []any { return args[:n] }
	}
	return map[string]olderCall{
		"enqueue": {13, without(3, 1), asItIs[any]},
		"claim": {14, first(14), func(v any) any {
			if f, ok := v.([]any); ok {
				return slices.Insert(slices.Clone(f), 4, any("0"), any("1"), any("0"))
			}
			return v
		}},
		"settle":      {15, without(6, 1), asItIs[any]},
		"heartbeat":   {3, without(1, 2), func(v any) any { return []any{v, []any{}} }},
		"reap":        {15, first(6), asItIs[any]},
		"replay":      {13, asItIs[[]any], asItIs[any]},
		"resume_key":  {5, asItIs[[]any], asItIs[any]},
		"remove_dead": {4, asItIs[[]any], asItIs[any]},
		"pause":       {2, asItIs[[]any], asItIs[any]},
		"checkpoint":  {5, asItIs[[]any], asItIs[any]},
	}
}

// versions runs about half of the calls as the older library does.
type versions struct {
	script.Run
	older map[string]olderCall
	names map[string]string        // of the present scripts, by their SHA
	old   map[string]script.Script // by name
	calls int
	made  map[string]int // calls of the older library, by name
}

func newVersions(run script.Run, set, old *script.Set) *versions {
	v := &versions{
		Run: run, older: olderCalls(), names: map[string]string{}, old: map[string]script.Script{}, made: map[string]int{},
	}
	for _, one := range set.All() {
		v.names[one.SHA()] = one.Name()
	}
	for _, one := range old.All() {
		v.old[one.Name()] = one
	}
	return v
}

func (v *versions) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	name := v.names[sha]
	call, there := v.older[name]
	v.calls++
	if !there || v.calls*2654435761>>13&1 == 0 { // scattered, and the same in each run
		return v.Run.EvalSha(ctx, sha, keys, args...)
	}
	v.made[name]++
	old, given := v.old[name], call.args(args)
	got := v.Run.EvalSha(ctx, old.SHA(), keys[:call.keys], given...)
	if redis.HasErrorPrefix(got.Err(), "NOSCRIPT") {
		got = v.Run.Eval(ctx, old.Text(), keys[:call.keys], given...)
	}
	out := redis.NewCmd(ctx)
	if got.Err() != nil {
		out.SetErr(got.Err())
		return out
	}
	out.SetVal(call.reply(got.Val()))
	return out
}

// An older library and this one work on one queue, call by call in any order: it holds all that the model says, but for
// what the older one does not write.
func TestModelAgreesAcrossVersions(t *testing.T) {
	t.Parallel()
	rdb, set := zqtest.Redis(t).Client(), virtualSet()
	old := script.FromDir("testdata/layout1", virtualClockText())
	made, steps := map[string]int{}, 0
	rapid.Check(t, func(rt *rapid.T) {
		if err := rdb.FlushDB(t.Context()).Err(); err != nil {
			rt.Fatalf("flush: %v", err)
		}
		s := newStore(t.Context(), rdb, set, "model")
		v := newVersions(rdb, set, old)
		x, err := newMachine(s.through(v))
		if err != nil {
			rt.Fatalf("clock: %v", err)
		}
		x.older = true
		rt.Repeat(x.actions())
		steps += x.steps
		for name, n := range v.made {
			made[name] += n
		}
	})
	t.Logf("%d steps, calls of the older library: %v", steps, made)
	for name := range maps.Keys(olderCalls()) {
		if made[name] == 0 {
			t.Errorf("the older library never made the call %s", name)
		}
	}
}
