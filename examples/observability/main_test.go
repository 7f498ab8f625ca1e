package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// Go's test cache does not see the redis-server: run this with -count=1.
func TestMain(m *testing.M) {
	child := func(args ...string) func() {
		return func() { os.Exit(run(args, os.Stdout, os.Stderr)) }
	}
	zqtest.RegisterChild("once", child())
	zqtest.RegisterChild("stay", child("-stay"))
	os.Exit(zqtest.Main(m))
}

// patience bounds each wait.
const patience = time.Minute

var (
	duration = regexp.MustCompile(` {2,}(client|consumer|internal|producer|server) .*?s {2}`)
	row      = regexp.MustCompile("(?m)^\\| `(messaging\\.[a-z_.]+)` \\| (counter|up-down counter|histogram|gauge)(?: (\\S+))? \\|")
)

// onRedis runs the program on a real Redis and gives what it prints: the tree without durations, and the page.
func onRedis(t *testing.T) (tree []string, page string) {
	t.Helper()
	var out, log bytes.Buffer
	if status := run([]string{"-redis", zqtest.Redis(t).URL()}, &out, &log); status != 0 {
		t.Fatalf("exit status %d\n%s\n%s", status, &out, &log)
	}
	_, rest, _ := strings.Cut(out.String(), "tried twice:\n")
	lines, page, found := strings.Cut(rest, "\nthe metrics page, without buckets:\n")
	if !found {
		t.Fatalf("no tree or no page in\n%s", &out)
	}
	for line := range strings.Lines(lines) {
		tree = append(tree, strings.TrimSpace(duration.ReplaceAllString(line, " $1 ")))
	}
	return tree, page
}

func TestShowsOneTraceAndThePage(t *testing.T) {
	t.Parallel()
	tree, page := onRedis(t)
	want := []string{
		"checkout internal",
		"send payments producer p-3",
		"process payments consumer attempt 1, p-3, failed: retry after 50ms: the payment gateway timed out",
		"process payments consumer attempt 2, p-3, linked to the one before",
		"send invoices producer invoice-o-3",
		"process invoices consumer attempt 1, invoice-o-3",
	}
	if diff := cmp.Diff(want, tree); diff != "" {
		t.Errorf("the tree (-want +got):\n%s", diff)
	}
	const of = `{messaging_destination_name="payments",messaging_system="zq"`
	for _, line := range []string{
		`messaging_client_sent_messages_total{messaging_destination_name="payments",messaging_operation_name="send",` +
			`messaging_system="zq",messaging_zq_enqueue_result="duplicate"} 1`,
		`messaging_zq_dead_letters_total` + of + `,messaging_zq_dlq_reason="card_expired"} 1`,
		`messaging_zq_idempotency_outcomes_total` + of + `,messaging_zq_idempotency_outcome="skipped"} 1`,
		`messaging_zq_outcomes_total` + of + `,messaging_zq_outcome="ack"} 4`,
		`messaging_zq_queue_depth` + of + `,messaging_zq_state="dead"} 1`,
		`messaging_zq_queue_depth` + of + `,messaging_zq_state="pending"} 0`,
		`messaging_zq_retries_total{error_type="_OTHER",` + of[1:] + `} 1`,
		`messaging_zq_schedule_lag_seconds_count` + of + `} 1`,
	} {
		if !strings.Contains(page, line+"\n") {
			t.Errorf("the page has no\n%s", line)
		}
	}
	if t.Failed() {
		t.Logf("the page:\n%s", page)
	}
}

// quiet count what goes wrong, and show from the first time that it does.
var quiet = map[string]bool{
	"messaging.zq.leases.lost": true, "messaging.zq.calls.failed": true, "messaging.zq.queue.read.failed": true,
}

// The page has the metrics that docs/telemetry.md lists, as Prometheus spells them, and no others.
func TestPageHasWhatTheDocsList(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile("../../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	_, page := onRedis(t)
	for line := range strings.Lines(page) {
		name, _, _ := strings.Cut(line, "{")
		shown[strings.TrimSuffix(strings.TrimSuffix(name, "_sum"), "_count")] = true
	}
	rows := row.FindAllStringSubmatch(string(docs), -1)
	if len(rows) < 15 {
		t.Fatalf("only %d metrics found in the docs", len(rows))
	}
	for _, m := range rows {
		name := strings.ReplaceAll(m[1], ".", "_")
		if m[3] == "s" {
			name += "_seconds"
		}
		if m[2] == "counter" {
			name += "_total"
		}
		// A gauge of the unit 1 is called a ratio.
		if !shown[name] && !shown[name+"_ratio"] && !quiet[m[1]] {
			t.Errorf("the page has no %s", name)
		}
		delete(shown, name)
		delete(shown, name+"_ratio")
	}
	for name := range shown {
		t.Errorf("the docs do not list %s", name)
	}
}

func TestProgram(t *testing.T) {
	t.Parallel()
	p := zqtest.Child(t, "once", noCollector...)
	p.Expect("redis: embedded in this program", patience)
	p.Expect("  checkout ", patience)
	p.Expect("messaging_client_consumed_messages_total{", patience)
	if code := p.Wait(patience); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

func TestBadURLIsNotRepeated(t *testing.T) {
	t.Parallel()
	var out, log bytes.Buffer
	status := run([]string{"-redis", "http://user:s3cret@x"}, &out, &log)
	if status != 1 || !strings.Contains(log.String(), "-redis is no URL") || strings.Contains(log.String()+out.String(), "s3cret") {
		t.Errorf("exit status %d, log:\n%s", status, log.String())
	}
}
