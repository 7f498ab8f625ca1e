package zqtest

import (
	"crypto/rand"
	"regexp"
	"testing"
)

// queueNameRoom is what a queue name leaves for the test's name: 128 bytes
// less a dot and the 26 of rand.Text.
const queueNameRoom = 128 - 1 - 26

var notInQueueName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// Queue gives a valid queue name that no other call gives: the test's name,
// shortened if need be, and a random end. So tests that share a server do not
// meet, nor do two runs of one test.
func Queue(t testing.TB) string {
	name := notInQueueName.ReplaceAllString(t.Name(), "-")
	return name[:min(len(name), queueNameRoom)] + "." + rand.Text()
}
