package zq

import (
	"context"
	"errors"

	"github.com/zqueue/zqueue/zqfx/zq/internal/keys"
	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// partitions names the keys of all partitions that the queue has now.
func (i *Inspector) partitions(ctx context.Context) ([]keys.Keys, error) {
	shape, err := i.scripts.Shape(ctx, i.rdb, keys.New(i.queue, 0))
	if err != nil {
		return nil, err
	}
	all := make([]keys.Keys, shape.Partitions)
	for p := range all {
		all[p] = keys.New(i.queue, p)
	}
	return all, nil
}

// each calls f for every partition, in order, until one fails.
func (i *Inspector) each(ctx context.Context, f func(k keys.Keys) error) error {
	all, err := i.partitions(ctx)
	if err != nil {
		return err
	}
	for _, k := range all {
		if err := f(k); err != nil {
			return err
		}
	}
	return nil
}

// find looks a message up in all partitions: where it is follows from its route, which nobody need remember. One that
// is there comes before one that is only remembered.
func (i *Inspector) find(ctx context.Context, id string) (at keys.Keys, found script.Found, err error) {
	err = i.each(ctx, func(k keys.Keys) error {
		f, err := i.scripts.Find(ctx, i.rdb, k, id)
		if err != nil {
			return err
		}
		if f.Letter != "" && (found.Letter == "" || found.Letter == "o") {
			at, found = k, f
		}
		if f.Letter != "" && f.Letter != "o" {
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return at, found, err
}

// errFound ends a search.
var errFound = errors.New("found")
