package logging

import (
	"context"
	"log/slog"
	"slices"
	"sync"
)

type contextKey struct{}

// with puts a run's logger into its context. Most runs never ask for it, so it is made when one does.
func with(ctx context.Context, l *slog.Logger, told []slog.Attr) context.Context {
	return context.WithValue(ctx, contextKey{}, sync.OnceValue(func() *slog.Logger {
		return slog.New(l.Handler().WithAttrs(slices.Clone(told)))
	}))
}

// From is the logger of the run that ctx belongs to: the middleware's, with the fields that tell the message.
// Outside a run it is slog.Default. Use its methods that take a context, so that a line finds its span.
func From(ctx context.Context) *slog.Logger {
	if logger, ok := ctx.Value(contextKey{}).(func() *slog.Logger); ok {
		return logger()
	}
	return slog.Default()
}
