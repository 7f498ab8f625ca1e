package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// scrapeTime bounds a scrape.
const scrapeTime = 10 * time.Second

// scrape gets the page as Prometheus would, and gives the lines about messages but for the histograms' buckets.
func scrape(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", url, response.Status)
	}
	return messaging(response.Body)
}

func messaging(page io.Reader) (string, error) {
	var found strings.Builder
	in := bufio.NewScanner(page)
	for in.Scan() {
		if name, _, _ := strings.Cut(in.Text(), "{"); strings.HasPrefix(name, "messaging_") && !strings.HasSuffix(name, "_bucket") {
			fmt.Fprintln(&found, in.Text())
		}
	}
	return found.String(), in.Err()
}
