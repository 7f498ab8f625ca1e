package deadletter

import (
	"maps"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Headers of a message that was sent to another queue when it died.
const (
	HeaderID       = "zq-dead-id"       // its id in the queue where it died, at most zq.MaxID bytes of it
	HeaderQueue    = "zq-dead-queue"    // that queue
	HeaderReason   = "zq-dead-reason"   // why it died
	HeaderAttempts = "zq-dead-attempts" // how many of its runs failed
	HeaderError    = "zq-dead-error"    // its last error's text, at most MaxErrorText bytes
)

// MaxErrorText bounds HeaderError, in bytes of valid UTF-8.
const MaxErrorText = 1 << 10

type header struct{ name, value string }

// headers are the message's own and as many of ours as fit, the most useful first. Ours never make a message that
// was valid invalid.
func headers(d *zq.Delivery, v verdict) map[string]string {
	all := maps.Clone(d.Headers)
	if all == nil {
		all = make(map[string]string, 5)
	}
	text, _ := textOf(v.said)
	ours := []header{
		{HeaderID, clip(d.ID, zq.MaxID)}, {HeaderQueue, d.Queue}, {HeaderReason, v.reason},
		{HeaderAttempts, strconv.Itoa(d.Attempt - d.Losses)}, {HeaderError, clip(text, MaxErrorText)},
	}
	for _, h := range ours {
		delete(all, h.name)
	}
	size := 0
	for name, value := range all {
		size += len(name) + len(value)
	}
	for _, h := range ours {
		if size += len(h.name) + len(h.value); size > zq.MaxHeaderBytes || len(all) >= zq.MaxHeaders {
			break
		}
		all[h.name] = h.value
	}
	return all
}

// clip shortens s to at most n bytes of valid UTF-8, without cutting a character in two.
func clip(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "")
}

// legible tells whether an id may be part of another one; a plain member may be any bytes.
func legible(id string) bool {
	return utf8.ValidString(id) && !strings.ContainsFunc(id, unicode.IsControl)
}
