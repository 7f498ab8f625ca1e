package trial

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/zqueue/zqueue/examples/existingservice/internal/demo"
	"github.com/zqueue/zqueue/examples/existingservice/internal/shop"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// The variants' names for their job.
const queue = "receipts"

var receiptDue = zq.NewKind[shop.Order]("receipt.due")

// StopsHTTPFirst tests that a request under way at the stop is served and its job kept, while jobs still run and no
// new requests are taken; then the jobs drain, and the service returns.
func StopsHTTPFirst(t *testing.T, service demo.Service) {
	t.Helper()
	server := zqtest.Redis(t)
	r := Start(t, service, server.URL())
	body, rest := io.Pipe()
	answers := make(chan string, 1)
	go func() { // ends with the request, which is bounded
		status, err := r.send(body)
		_ = body.Close()
		answers <- fmt.Sprint(status, " ", err)
	}()
	write(t, rest, `{"id":"slow","customer":"ann",`) // returns when the service reads the order
	r.stop()
	zqtest.Eventually(t, Patience, r.refuses, "HTTP takes no more requests")

	producer, err := zq.NewProducer(server.Client(), queue)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := receiptDue.Send(t.Context(), producer, shop.Order{ID: "other", Customer: "bob", Item: "tea"}); err != nil {
		t.Fatal(err)
	}
	if got := zqtest.Wait(t, r.Mailed, Patience); !strings.Contains(got, "order other.") {
		t.Errorf("mailed %q", got)
	}
	write(t, rest, `"item":"milk"}`)
	_ = rest.Close()
	if got := zqtest.Wait(t, answers, Patience); got != "201 <nil>" {
		t.Errorf("the request under way at the stop: %s", got)
	}
	if err := zqtest.Wait(t, r.Ended, Patience); err != nil {
		t.Errorf("the service ended with %v", err)
	}
	inspector, err := zq.NewInspector(server.Client(), queue)
	if err != nil {
		t.Fatal(err)
	}
	depth, err := inspector.Depth(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if depth.Unfinished() != depth.Pending || depth.Pending+int64(len(r.Mailed)) != 1 {
		t.Errorf("the slow order's job is neither done nor waiting: %+v, %d mailed", depth, len(r.Mailed))
	}
}

// RepeatMailsOnce tests that who places an order twice has one receipt.
func RepeatMailsOnce(t *testing.T, service demo.Service) {
	t.Helper()
	r := Start(t, service, zqtest.Redis(t).URL())
	for range 3 {
		if status := r.Order("o-7"); status != http.StatusCreated {
			t.Fatalf("status %d", status)
		}
	}
	if got := zqtest.Wait(t, r.Mailed, Patience); !strings.Contains(got, "order o-7.") {
		t.Errorf("mailed %q", got)
	}
	r.stop()
	if err := zqtest.Wait(t, r.Ended, Patience); err != nil {
		t.Error(err)
	}
	if n := len(r.Mailed); n > 0 {
		t.Errorf("%d receipts more", n)
	}
}

// EndsWithItsJobs tests that a service whose jobs can run no more ends, instead of promising receipts that nobody
// mails: here the queue was taken over by a newer library.
func EndsWithItsJobs(t *testing.T, service demo.Service, why func(error) bool) {
	t.Helper()
	server := zqtest.Redis(t)
	r := Start(t, service, server.URL())
	if status := r.Order("o-1"); status != http.StatusCreated {
		t.Fatalf("status %d", status)
	}
	zqtest.Wait(t, r.Mailed, Patience)
	if err := server.Client().HSet(t.Context(), "zq:{"+queue+"}:meta", "layout", "2").Err(); err != nil {
		t.Fatal(err)
	}
	if err := zqtest.Wait(t, r.Ended, Patience); !why(err) {
		t.Errorf("the service ended with %v", err)
	}
	if !r.refuses() {
		t.Error("HTTP still takes requests")
	}
}

// NewerLayout is why a service by hand ends.
func NewerLayout(err error) bool { return errors.Is(err, zq.ErrNewerLayout) }

func write(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}
