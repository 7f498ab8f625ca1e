package script_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// answers gives one reply to every script.
type answers struct{ reply any }

func (a answers) EvalSha(ctx context.Context, _ string, _ []string, _ ...any) *redis.Cmd {
	cmd := redis.NewCmd(ctx)
	cmd.SetVal(a.reply)
	return cmd
}

func (a answers) Eval(ctx context.Context, sha string, names []string, args ...any) *redis.Cmd {
	return a.EvalSha(ctx, sha, names, args...)
}

// Whatever comes back instead of a script's own reply, a call fails or gives something empty; it never panics.
func TestRepliesOfAnotherKind(t *testing.T) {
	t.Parallel()
	s := newStore(t.Context(), nil, virtualSet(), "replies")
	member := func(id string) string { return "\x0100000000000001:" + id }
	many := make([]any, 20)
	for _, reply := range []any{
		nil, int64(0), int64(-7), "", "|", "x|y", []any{}, []any{nil}, []any{nil, nil, nil, nil, nil, nil, nil, nil}, many,
		[]any{"served", "x", "y", "z", []any{"m"}, []any{}, []any{}, []any{}},
		[]any{"served", int64(1), int64(1), int64(1), []any{int64(5)}, []any{nil}, []any{nil}, []any{}},
		map[any]any{"a": "b"}, 1.5, true, []any{[]any{[]any{}}},
	} {
		for _, c := range scriptCases() {
			_ = c.run(s.through(answers{reply}), member) // an error or not; what counts is that it returns
		}
	}
	for _, c := range scriptCases() {
		err := c.run(s.through(answers{map[any]any{}}), member)
		if quiet := c.script() == "pause" || c.script() == "resume_key" || c.script() == "remove_dead" ||
			c.script() == "replay" || c.script() == "checkpoint"; err == nil && !quiet {
			t.Errorf("%s takes a map for its reply", c.name)
		}
	}
}

func FuzzRecords(f *testing.F) {
	for _, raw := range []string{"", "|", "|||||", "1|2|1|3|4|failed|\x00\n", "x|-1|9|9|nan|", "\x00\x00\x00\x00\x00", "a\x001\x002\x003\x004\x00e\x00e"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if r := script.ReadRecord(raw); len(r.Error) > len(raw) {
			t.Errorf("%q reads as %+v", raw, r)
		}
		if s := script.ReadStory(raw); len(s.Error) > len(raw) {
			t.Errorf("%q reads as %+v", raw, s)
		}
	})
}
