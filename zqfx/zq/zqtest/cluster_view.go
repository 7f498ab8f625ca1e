package zqtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// member is a node as a node of the cluster sees it: a line of CLUSTER NODES.
type member struct {
	id, addr string
	flags    []string
	master   string // of a replica: its master's id
	epoch    int64
	slots    [][2]int // from, to
}

func (m member) has(flag string) bool { return slices.Contains(m.flags, flag) }

func (m member) serves(slot int) bool {
	return slices.ContainsFunc(m.slots, func(r [2]int) bool { return r[0] <= slot && slot <= r[1] })
}

// view is what the node knows of the cluster.
func (s *Server) view() ([]member, error) {
	words, err := s.command("CLUSTER", "NODES")
	if err != nil {
		return nil, err
	}
	var all []member
	for line := range strings.Lines(words[0]) {
		m, err := parseMember(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Addr(), err)
		}
		all = append(all, m)
	}
	return all, nil
}

// self is what the node takes itself for.
func (s *Server) self() (member, error) {
	all, err := s.view()
	if err != nil {
		return member{}, err
	}
	i := slices.IndexFunc(all, func(m member) bool { return m.has("myself") })
	if i < 0 {
		return member{}, fmt.Errorf("%s does not know itself", s.Addr())
	}
	return all[i], nil
}

// parseMember reads: id ip:port@bus flags master ping pong epoch link slot…
// A slot on the move stands there in brackets, and is passed over.
func parseMember(line string) (member, error) {
	f := strings.Fields(line)
	if len(f) < 8 {
		return member{}, fmt.Errorf("CLUSTER NODES says %q", line)
	}
	m := member{id: f[0], flags: strings.Split(f[2], ","), master: strings.Trim(f[3], "-")}
	m.addr, _, _ = strings.Cut(f[1], "@")
	var err error
	if m.epoch, err = strconv.ParseInt(f[6], 10, 64); err != nil {
		return member{}, fmt.Errorf("CLUSTER NODES says %q: %w", line, err)
	}
	for _, text := range f[8:] {
		if strings.HasPrefix(text, "[") {
			continue
		}
		from, to, isRange := strings.Cut(text, "-")
		if !isRange {
			to = from
		}
		a, err1 := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil {
			return member{}, fmt.Errorf("CLUSTER NODES says %q", line)
		}
		m.slots = append(m.slots, [2]int{a, b})
	}
	return m, nil
}

// serving says who serves what, in one line that is the same for the same view.
func serving(nodes []member) string {
	var parts []string
	for _, m := range nodes {
		if len(m.slots) > 0 {
			parts = append(parts, fmt.Sprint(m.id, m.slots))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// Slot is the slot of a key in a cluster: of what stands between its first braces,
// or of all of it.
func Slot(key string) int {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if tag, _, closed := strings.Cut(key[open+1:], "}"); closed && tag != "" {
			key = tag
		}
	}
	crc := uint16(0)
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			carry := crc & 0x8000
			crc <<= 1
			if carry != 0 {
				crc ^= 0x1021
			}
		}
	}
	return int(crc % clusterSlots)
}
