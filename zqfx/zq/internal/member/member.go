// Package member reads and writes the members of a queue's sorted sets.
//
//	message   "\1" 14 hex digits of the sequence ":" id [ "\0" key ]
//	key entry "\0" key
//	plain     anything else: somebody put it there with ZADD; its id and body are the member
package member

import (
	"strconv"
	"strings"
)

const (
	seqDigits = 14
	headLen   = 1 + seqDigits + 1
)

// Member is a parsed member of a sorted set.
type Member struct {
	Seq     int64 // enqueue sequence in microseconds; 0 for a plain member
	ID, Key string
	Plain   bool
}

// Format writes the member of a message. seq must be in [0, 2^53).
func Format(seq int64, id, key string) string {
	hex := strconv.FormatInt(seq, 16)
	var b strings.Builder
	b.Grow(headLen + len(id) + 1 + len(key))
	b.WriteByte(1)
	b.WriteString("00000000000000"[:max(0, seqDigits-len(hex))])
	b.WriteString(hex)
	b.WriteByte(':')
	b.WriteString(id)
	if key != "" {
		b.WriteByte(0)
		b.WriteString(key)
	}
	return b.String()
}

// Parse reads any member. What is not a message is plain, so Parse cannot fail.
func Parse(m string) Member {
	if len(m) <= headLen || m[0] != 1 || m[headLen-1] != ':' {
		return Member{ID: m, Plain: true}
	}
	seq, err := strconv.ParseUint(m[1:headLen-1], 16, 63) // no sign
	if err != nil {
		seq = 0
	}
	id, key, _ := strings.Cut(m[headLen:], "\x00")
	return Member{Seq: int64(seq), ID: id, Key: key}
}

// Entry is the member that stands for an ordering key.
func Entry(key string) string { return "\x00" + key }

// IsEntry tells whether a member stands for a key, and which.
func IsEntry(m string) (key string, ok bool) {
	if len(m) > 1 && m[0] == 0 {
		return m[1:], true
	}
	return "", false
}
