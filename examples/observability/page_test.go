package main

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// exemplar is one of OpenMetrics, on a bucket of the time that sending takes.
var exemplar = regexp.MustCompile(
	`(?m)^messaging_client_operation_duration_seconds_bucket\{.*"send".*\} \d+ # \{.*trace_id="[0-9a-f]{32}"`)

// Prometheus can scrape while the program stays; a bucket of sends names a trace.
func TestStaysForPrometheus(t *testing.T) {
	t.Parallel()
	p := zqtest.Child(t, "stay", noCollector...)
	url := strings.TrimPrefix(p.Expect("metrics: ", patience), "metrics: ")
	p.Expect("staying until Ctrl-C", patience)
	page := get(t, url, "application/openmetrics-text; version=1.0.0")
	for _, line := range []string{"# TYPE messaging_process_duration_seconds histogram", `target_info{service_name="payments"`} {
		if !strings.Contains(page, line) {
			t.Errorf("no %s in the page", line)
		}
	}
	if !exemplar.MatchString(page) {
		t.Errorf("no exemplar in the page:\n%s", page)
	}
	p.Terminate()
	p.Expect("  checkout ", patience)
	if code := p.Wait(patience); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

func get(t *testing.T, url, accept string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, response.Status, err)
	}
	return string(text)
}
