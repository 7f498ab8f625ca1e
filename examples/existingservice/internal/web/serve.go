// Package web serves HTTP with a span for each request, and stops in good order.
package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// patience is how long requests under way may take at the stop. What stops later needs time as well.
const patience = 5 * time.Second

// NewServer makes a server.
func NewServer(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: patience}
}

// Serve answers requests until ctx ends, and returns when no request is under way.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := NewServer(h)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }() // ends by Shutdown
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return Shutdown(context.WithoutCancel(ctx), server)
	}
}

// Shutdown takes no new requests, waits for those under way, and cuts off what takes longer than 5 s or than ctx.
func Shutdown(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, server.Close())
	}
	return err
}
