package zqtest

import (
	"slices"
	"sync/atomic"
)

// Counter counts the commands that match, from the moment it was asked for. It
// is safe for concurrent use.
type Counter struct {
	match             Match
	commands, replies atomic.Int64
}

// Commands is how many matching commands clients have sent, dropped ones too.
func (c *Counter) Commands() int { return int(c.commands.Load()) }

// Replies is how many of them the server has answered, lost replies too.
func (c *Counter) Replies() int { return int(c.replies.Load()) }

// Traffic counts what went through a connection.
type Traffic struct {
	Commands int  // sent by the client, dropped ones too
	Replies  int  // given by the server, lost ones too; pushes are none
	Open     bool // whether the connection still is; false in a total
}

// Count counts matching commands from now on.
func (p *FaultProxy) Count(match Match) *Counter {
	c := &Counter{match: match}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counters = append(slices.Clone(p.counters), c)
	return c
}

// Conns tells of every connection so far, in the order they came.
func (p *FaultProxy) Conns() []Traffic {
	p.mu.Lock()
	defer p.mu.Unlock()
	conns := make([]Traffic, len(p.sessions))
	for i, s := range p.sessions {
		conns[i] = s.traffic()
	}
	return conns
}

// Total sums up all connections so far.
func (p *FaultProxy) Total() Traffic {
	var total Traffic
	for _, c := range p.Conns() {
		total.Commands += c.Commands
		total.Replies += c.Replies
	}
	return total
}
