package zqfxtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Enqueued is a message that is in a queue.
type Enqueued[T any] struct {
	zq.Info
	Payload T
}

// RequireEnqueued gives the messages of a kind that are in a queue now and match, in the order of their enqueueing,
// and fails the test if there is none. Dead letters are among them, see State; an acked message is in the queue no
// more: look before anybody works, or at a queue that nobody consumes. Without match all of the kind are meant.
func RequireEnqueued[T any](
	t testing.TB, app *App, queue string, kind zq.Kind[T], match ...func(Enqueued[T]) bool,
) []Enqueued[T] {
	t.Helper()
	all, err := contents(t.Context(), app, queue)
	if err != nil {
		t.Fatal(err)
	}
	names := kind.Handle(nil).Names()
	var found []Enqueued[T]
	for _, info := range all {
		if !slices.Contains(names, info.Message.Kind) {
			continue
		}
		v, err := kind.Open(info.Message)
		if err != nil {
			t.Errorf("zqfxtest: %s/%s: %v", queue, info.ID, err)
			continue
		}
		e := Enqueued[T]{info, v}
		if !slices.ContainsFunc(match, func(m func(Enqueued[T]) bool) bool { return !m(e) }) {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		t.Fatalf("zqfxtest: no message of kind %s in queue %s that matches; it has %s", kind.Name(), queue, list(all))
	}
	return found
}

// contents reads all messages with an envelope, in the order of their enqueueing. The place of the envelopes is
// part of the wire format.
func contents(ctx context.Context, app *App, queue string) ([]zq.Info, error) {
	i, err := app.producers().Inspector(queue)
	if err != nil {
		return nil, err
	}
	ids, err := app.rdb.HKeys(ctx, "zq:{"+queue+"}:msg").Result()
	if err != nil {
		return nil, fmt.Errorf("zqfxtest: list %s: %w", queue, err)
	}
	var all []zq.Info
	for _, id := range ids {
		info, err := i.Message(ctx, id)
		if errors.Is(err, zq.ErrNotFound) {
			continue // acked meanwhile
		}
		if err != nil {
			return nil, err
		}
		all = append(all, info)
	}
	slices.SortFunc(all, func(a, b zq.Info) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return all, nil
}

// list names what a queue has, for a message; a handful is enough.
func list(all []zq.Info) string {
	if len(all) == 0 {
		return "nothing"
	}
	const most = 5
	var parts []string
	for _, info := range all[:min(len(all), most)] {
		parts = append(parts, fmt.Sprintf("%s of kind %q", info.ID, info.Message.Kind))
	}
	if len(all) > most {
		parts = append(parts, fmt.Sprintf("%d more", len(all)-most))
	}
	return strings.Join(parts, ", ")
}
