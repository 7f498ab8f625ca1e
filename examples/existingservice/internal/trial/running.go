package trial

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/zqueue/zqueue/examples/existingservice/internal/demo"
	"github.com/zqueue/zqueue/examples/existingservice/internal/shop"
)

// Patience bounds each wait.
const Patience = time.Minute

// Running is a service that a test talks to.
type Running struct {
	// URL is where it answers.
	URL string
	// Mailed gets the text of each receipt that is mailed.
	Mailed <-chan string
	// Ended gets what the service returns.
	Ended <-chan error

	t      *testing.T
	addr   string
	cancel context.CancelFunc
}

// Start runs the service on a Redis until the test ends.
func Start(t *testing.T, service demo.Service, redisURL string) *Running {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	mailed, ended, over := make(chan string, 100), make(chan error, 1), make(chan struct{})
	traces := noop.NewTracerProvider()
	env := demo.Env{
		Listener: listener, Traces: traces, Log: slog.New(slog.DiscardHandler), Out: io.Discard, RedisURL: redisURL,
		Mail: shop.NewMailer(func(_ context.Context, _, text string) error {
			mailed <- text
			return nil
		}, traces),
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // ends with the service, which the test waits for
		defer close(over)
		ended <- service(ctx, env)
	}()
	t.Cleanup(func() {
		cancel()
		<-over
		_ = listener.Close()
	})
	addr := listener.Addr().String()
	return &Running{URL: "http://" + addr, Mailed: mailed, Ended: ended, t: t, addr: addr, cancel: cancel}
}

// stop tells the service to stop.
func (r *Running) stop() { r.cancel() }

// refuses says whether no new connection is taken.
func (r *Running) refuses() bool {
	c, err := (&net.Dialer{}).DialContext(r.t.Context(), "tcp", r.addr)
	if err == nil {
		_ = c.Close()
	}
	return err != nil
}

// Order places an order and gives the status.
func (r *Running) Order(id string) int {
	r.t.Helper()
	status, err := r.send(strings.NewReader(`{"id":"` + id + `","customer":"ann","item":"milk"}`))
	if err != nil {
		r.t.Fatal(err)
	}
	return status
}

// send sends a body once the service reads it.
func (r *Running) send(body io.Reader) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL+"/orders", body)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Expect", "100-continue")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, ExpectContinueTimeout: Patience}}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, errors.Join(err, response.Body.Close())
}
