package main

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zqueue/zqueue/examples/existingservice/internal/demo"
	"github.com/zqueue/zqueue/examples/existingservice/internal/shop"
	"github.com/zqueue/zqueue/examples/existingservice/internal/trial"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
	"github.com/zqueue/zqueue/zqfx/zqfxtest"
)

// Go's test cache does not see the redis-server: run this with -count=1.
func TestMain(m *testing.M) {
	zqtest.RegisterChild("wired", func() { os.Exit(demo.Run(run, nil, os.Stdout, os.Stderr)) })
	os.Exit(zqtest.Main(m))
}

func TestProgram(t *testing.T) {
	t.Parallel()
	p := zqtest.Child(t, "wired")
	p.Expect("redis: embedded in this program", time.Minute)
	p.Expect("POST /orders: 201 Created after ", time.Minute)
	p.Expect("receipts mailed: 1", time.Minute)
	p.Expect("        process receipts         consumer", time.Minute)
	if code := p.Wait(time.Minute); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

func TestWiring(t *testing.T) {
	t.Parallel()
	zqfxtest.Validate(t, service(demo.Env{Mail: &shop.Mailer{}}))
}

func TestRequestAndJobAreOneTrace(t *testing.T) {
	t.Parallel()
	trial.OneTrace(t, run)
}

func TestStopsHTTPBeforeJobs(t *testing.T) {
	t.Parallel()
	trial.StopsHTTPFirst(t, run)
}

func TestRepeatedOrderHasOneReceipt(t *testing.T) {
	t.Parallel()
	trial.RepeatMailsOnce(t, run)
}

func TestEndsWithItsJobs(t *testing.T) {
	t.Parallel()
	trial.EndsWithItsJobs(t, run, func(err error) bool {
		return err != nil && strings.Contains(err.Error(), "exit code 70")
	})
}

// A load balancer sends nothing to a service that cannot take jobs, and comes back when orders go through.
func TestReadyFollowsRedis(t *testing.T) {
	t.Parallel()
	server := zqtest.Redis(t, zqtest.WithAppendOnly())
	r := trial.Start(t, run, server.URL())
	ready := func(want int) func() bool {
		return func() bool { return get(t, r.URL+"/ready") == want }
	}
	zqtest.Eventually(t, trial.Patience, ready(http.StatusOK), "ready")
	server.Stop()
	zqtest.Eventually(t, trial.Patience, ready(http.StatusServiceUnavailable), "not ready without Redis")
	server.Restart()
	zqtest.Eventually(t, trial.Patience, ready(http.StatusOK), "ready again")
}

func get(t *testing.T, url string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), trial.Patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func TestBadURLIsNotRepeated(t *testing.T) {
	t.Parallel()
	var out, log bytes.Buffer
	status := demo.Run(run, []string{"-redis", "http://user:s3cret@x"}, &out, &log)
	if status != 1 || !strings.Contains(log.String(), "-redis is no URL") || strings.Contains(log.String()+out.String(), "s3cret") {
		t.Errorf("exit status %d, log:\n%s", status, log.String())
	}
}
