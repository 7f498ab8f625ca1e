package script_test

import (
	"fmt"
	"strings"
)

// draft is a new message.
type draft struct {
	id, key string
	score   string // decimal, "" for the sequence
	due     int64  // an instant in microseconds; not later than now means at once
	body    string
}

// enqueue answers with the sequence of the first and a letter for each; a call that comes too late gets no
// answer.
func (m *model) enqueue(t token, list []draft) (int64, string) {
	op, again, late := m.asked(t)
	switch {
	case late:
		return 0, ""
	case again:
		first, states, _ := strings.Cut(op.outcome, "|")
		return integer(first), states
	}
	first := m.nextSequence()
	states := m.place(list)
	m.note(t, fmt.Sprintf("%d|%s", first, states))
	m.touched = true
	if n := len(states) - strings.Count(states, "a"); n > 0 {
		m.stats["duplicates"] += int64(n)
	}
	return first, states
}

// place puts new messages where they belong, once per id.
func (m *model) place(list []draft) string {
	seq := m.nextSequence()
	var states strings.Builder
	placed := map[string]string{}
	for _, d := range list {
		if letter, twice := placed[d.id]; twice {
			states.WriteString(letter)
			continue
		}
		if letter := m.letter(d.id); letter != "" {
			states.WriteString(letter)
			continue
		}
		states.WriteString("a")
		placed[d.id] = "p"
		if d.due > m.now {
			placed[d.id] = "d"
		}
		m.accept(d, seq)
		m.seq = seq
		seq++
	}
	return states.String()
}

func (m *model) accept(d draft, seq int64) {
	member := fmt.Sprintf("\x01%014x:%s", seq, d.id)
	if d.key != "" {
		member += "\x00" + d.key
	}
	msg := &message{id: d.id, key: d.key, member: member, seq: seq, body: envelopeHead(seq, d.key) + d.body}
	m.messages[d.id], m.everKnown[member] = msg, msg
	m.count("enqueued")
	score := float64(seq)
	if d.score != "" {
		score = float64(integer(d.score))
	}
	switch {
	case d.due > m.now:
		m.delayed[member] = float64(d.due)
		if d.score != "" {
			m.records[d.id] = record{score: number(score)}
		}
	case d.key != "":
		m.waiting(d.key)[member] = score
	default:
		m.ready[member] = score
	}
}

// envelopeHead is protobuf: field 1 the sequence as 14 hex digits, field 2 the key if there is one.
func envelopeHead(seq int64, key string) string {
	head := []byte{1<<3 | 2, 14}
	head = fmt.Appendf(head, "%014x", seq)
	if key == "" {
		return string(head)
	}
	head = append(head, 2<<3|2)
	n := len(key)
	for ; n >= 0x80; n >>= 7 {
		head = append(head, byte(n)|0x80)
	}
	return string(append(head, byte(n))) + key
}

// letter says where a message is, "" if it is unknown.
func (m *model) letter(id string) string {
	msg := m.messages[id]
	if msg == nil {
		if m.done[id] > m.now {
			return "o"
		}
		return ""
	}
	return m.letterOf(msg.member)
}

func (m *model) letterOf(member string) string {
	in := func(z zset) bool { _, ok := z[member]; return ok }
	waits := in(m.ready) || m.keyOf(member) != "" && in(m.waiting(m.keyOf(member)))
	switch failed := m.record(member).attempts > 0; {
	case in(m.dead):
		return "x"
	case in(m.suspect), failed && (waits || in(m.delayed)):
		return "t"
	case in(m.delayed):
		return "d"
	case waits:
		return "p"
	}
	return "r"
}
