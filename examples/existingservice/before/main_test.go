package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zqueue/zqueue/examples/existingservice/internal/demo"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

func TestMain(m *testing.M) {
	zqtest.RegisterChild("before", func() { os.Exit(demo.Run(run, nil, os.Stdout, os.Stderr)) })
	os.Exit(zqtest.Main(m))
}

func TestProgram(t *testing.T) {
	t.Parallel()
	p := zqtest.Child(t, "before")
	p.Expect("POST /orders: 502 Bad Gateway after ", time.Minute)
	p.Expect("receipts mailed: 0", time.Minute)
	if code := p.Wait(time.Minute); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// This is what the other variants mend: the customer waits for the mail server, and fails with it.
func TestCustomerFailsWithTheMailServer(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	story, err := demo.Tell(t.Context(), run, "", &out, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if story.Status != http.StatusBadGateway || story.Mailed != 0 || out.Len() > 0 {
		t.Errorf("status %d %q, %d receipts mailed, output %q", story.Status, story.Text, story.Mailed, out.String())
	}
	want := []string{"buy a book client > POST /orders server > mail receipt client"}
	if diff := cmp.Diff(want, story.Paths()); diff != "" {
		t.Errorf("the trace (-want +got):\n%s", diff)
	}
}
