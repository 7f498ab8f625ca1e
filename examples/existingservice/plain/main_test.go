package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zqueue/zqueue/examples/existingservice/internal/demo"
	"github.com/zqueue/zqueue/examples/existingservice/internal/trial"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// Go's test cache does not see the redis-server: run this with -count=1.
func TestMain(m *testing.M) {
	zqtest.RegisterChild("plain", func() { os.Exit(demo.Run(run, nil, os.Stdout, os.Stderr)) })
	os.Exit(zqtest.Main(m))
}

func TestProgram(t *testing.T) {
	t.Parallel()
	p := zqtest.Child(t, "plain")
	p.Expect("redis: embedded in this program", time.Minute)
	p.Expect("POST /orders: 201 Created after ", time.Minute)
	p.Expect("receipts mailed: 1", time.Minute)
	p.Expect("        process receipts         consumer", time.Minute)
	if code := p.Wait(time.Minute); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
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
	trial.EndsWithItsJobs(t, run, trial.NewerLayout)
}

func TestBadURLIsNotRepeated(t *testing.T) {
	t.Parallel()
	var out, log bytes.Buffer
	status := demo.Run(run, []string{"-redis", "http://user:s3cret@x"}, &out, &log)
	if status != 1 || !strings.Contains(log.String(), "-redis is no URL") || strings.Contains(log.String()+out.String(), "s3cret") {
		t.Errorf("exit status %d, log:\n%s", status, log.String())
	}
}
