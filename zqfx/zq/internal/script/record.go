package script

import (
	"strconv"
	"strings"
)

// Record is what the store knows of a message that has failed; the zero value for one that has not.
type Record struct {
	Attempts int // finished runs that failed
	Losses   int // workers that died while they held it alone
	Alone    bool
	Replays  int // times it came back from the dead letters
	Score    string
	Trace    string // what its last run left for the next
	Error    string
}

// ReadRecord reads a retry record; what it cannot read is a record of nothing.
func ReadRecord(raw string) Record {
	f := strings.SplitN(raw, "|", 7)
	if len(f) < 7 {
		return Record{}
	}
	return Record{
		Attempts: atoi(f[0]), Losses: atoi(f[1]), Alone: f[2] == "1", Replays: atoi(f[3]), Score: f[4],
		Trace: f[5], Error: f[6],
	}
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// Story is what is kept of a dead letter beside its envelope.
type Story struct {
	Reason                    string
	Attempts, Losses, Replays int
	Score, Trace              string
	Error                     string
}

// ReadStory reads a field of deadinfo.
func ReadStory(raw string) Story {
	f := strings.SplitN(raw, "\x00", 7)
	if len(f) < 7 {
		return Story{}
	}
	return Story{
		Reason: f[0], Attempts: atoi(f[1]), Losses: atoi(f[2]), Replays: atoi(f[3]), Score: f[4],
		Trace: f[5], Error: f[6],
	}
}
