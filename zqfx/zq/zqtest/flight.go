package zqtest

import (
	"strings"
	"time"
)

// flight is a command on its way, with what is to befall it.
type flight struct {
	faults   []*Fault
	counters []*Counter
}

// before lets happen what happens to a command ahead of the server.
func (s *session) before(f *flight) bool {
	for _, fault := range f.faults {
		switch fault.kind {
		case delayCommand:
			fault.strike()
			s.sleep(fault)
		case dropCommand:
			fault.strike()
			return false
		}
	}
	return !s.quitting()
}

// sleep waits out a delay unless it is called off.
func (s *session) sleep(f *Fault) {
	timer := time.NewTimer(f.delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-f.released:
	case <-s.quit:
	}
}

// answered reports whether the command has one reply of its own. Subscribing
// is answered by pushes in RESP3; in RESP2 it ends the order of replies.
func (s *session) answered(words []string) bool {
	name := strings.ToUpper(words[0])
	switch {
	case name == "HELLO" && len(words) > 1:
		s.resp3 = words[1] == "3"
	case strings.HasSuffix(name, "SUBSCRIBE"): // P-, S-, UN- and so on
		s.unordered = !s.resp3
		return false
	}
	return !s.unordered
}

// deliver lets happen what happens to a reply and reports false if it is lost.
func (s *session) deliver(f *flight) bool {
	if f == nil {
		return true // a message of a RESP2 subscription
	}
	s.replies.Add(1)
	for _, c := range f.counters {
		c.replies.Add(1)
	}
	arrives := true
	for _, fault := range f.faults {
		switch fault.kind {
		case holdReply:
			fault.strike()
			select {
			case <-fault.released:
			case <-s.quit:
			}
		case dropReply:
			fault.strike()
			arrives = false
		}
	}
	return arrives
}

func (s *session) push(f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flights = append(s.flights, f)
}

func (s *session) pop() *flight {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.flights) == 0 {
		return nil
	}
	f := s.flights[0]
	s.flights = s.flights[1:]
	return f
}
