package script_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zqueue/zqueue/zqfx/zq/internal/keys"
	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// A session's last call can be asked again; one that comes late, after its session went on, changes nothing;
// and the store keeps one outcome a session however many calls it makes.
func TestSessionOfCalls(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := zqtest.Shared(t).Client()
	k, set := keys.New(zqtest.Queue(t), 0), script.New()
	enqueue := func(token string, ids ...string) (script.Placed, error) {
		list := make([]script.Placement, len(ids))
		for i, id := range ids {
			list[i].ID = id
		}
		return set.Enqueue(ctx, rdb, k, 0, token, list)
	}
	first, err := enqueue("s:9", "a", "b")
	if err != nil || first.States != "aa" {
		t.Fatal(first, err)
	}
	again, err := enqueue("s:9", "a", "b")
	if err != nil || again != first {
		t.Fatalf("asked again: %v, %v; at first %v", again, err, first)
	}
	if next, err := enqueue("s:10", "a", "c"); err != nil || next.States != "pa" {
		t.Fatal(next, err)
	}
	if err := rdb.HDel(ctx, k.Msg, "a", "b").Err(); err != nil { // as if both had been acked meanwhile
		t.Fatal(err)
	}
	before := rdb.HGetAll(ctx, k.Msg).Val()
	if late, err := enqueue("s:9", "a", "b"); err == nil || !strings.Contains(err.Error(), "ZQLATE") {
		t.Errorf("a late call: %v, %v", late, err)
	}
	if diff := cmp.Diff(before, rdb.HGetAll(ctx, k.Msg).Val()); diff != "" {
		t.Error(diff)
	}
	if other, err := enqueue("r:1", "d"); err != nil || other.States != "a" {
		t.Errorf("another session: %v, %v", other, err)
	}
	if n := rdb.HLen(ctx, k.Ops).Val(); n != 2 {
		t.Errorf("%d outcomes kept of 2 sessions", n)
	}
}
