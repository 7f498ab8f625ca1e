package zq

import (
	"log/slog"
	"sync"
	"sync/atomic"
)

// counters are a session's own; those of the queue live in Redis.
type counters struct {
	claims, claimed, started, acked, failed, postponed, released, dead atomic.Int64
	settled, lost, taken, late, errors                                 atomic.Int64
}

// ConsumerStats counts what one consumer has done since its start. Every number but Running and Waiting only
// grows.
type ConsumerStats struct {
	Claims    int64 // calls that claimed, empty ones included
	Claimed   int64 // messages claimed
	Started   int64 // runs of the handler
	Acked     int64 // runs that ended well
	Retried   int64 // runs that failed and will be tried again
	Postponed int64 // runs put off uncharged
	Released  int64 // messages given back unstarted, or stopped by shutdown
	Dead      int64 // messages sent to the dead letters
	Settled   int64 // outcomes recorded
	Lost      int64 // messages whose lease was lost
	Taken     int64 // messages taken from handlers that were deaf to their context
	Late      int64 // such handlers that returned after all
	Errors    int64 // calls to Redis that failed, repeated ones included
	Running   int64 // handlers at work now, deaf ones included
	Waiting   int64 // messages claimed and not started now
}

func (s *session) stats() ConsumerStats {
	c := s.count
	return ConsumerStats{
		Claims: c.claims.Load(), Claimed: c.claimed.Load(), Started: c.started.Load(), Acked: c.acked.Load(),
		Retried: c.failed.Load(), Postponed: c.postponed.Load(), Released: c.released.Load(), Dead: c.dead.Load(),
		Settled: c.settled.Load(), Lost: c.lost.Load(), Taken: c.taken.Load(), Late: c.late.Load(),
		Errors: c.errors.Load(), Running: s.load.busy.Load(), Waiting: s.load.messages.Load(),
	}
}

// journal logs changes, not events: trouble once when it begins and once when it is over.
type journal struct {
	log *slog.Logger

	mu     sync.Mutex
	broken map[string]bool
	said   map[string]bool
	now    string
}

func newJournal(l *slog.Logger, queue string) *journal {
	return &journal{log: l.With("queue", queue), broken: make(map[string]bool), said: make(map[string]bool)}
}

// trouble notes that something does not work.
func (j *journal) trouble(what string, err error) {
	j.mu.Lock()
	known := j.broken[what]
	j.broken[what] = true
	j.mu.Unlock()
	if !known {
		j.log.Warn("zq: "+what+" fails; trying on", "error", err)
	}
}

// once logs what will go on and needs to be said only once.
func (j *journal) once(what string, err error) {
	j.mu.Lock()
	known := j.said[what]
	j.said[what] = true
	j.mu.Unlock()
	if !known {
		j.log.Error("zq: "+what, "error", err)
	}
}

// well notes that it works.
func (j *journal) well(what string) {
	j.mu.Lock()
	known := j.broken[what]
	delete(j.broken, what)
	j.mu.Unlock()
	if known {
		j.log.Info("zq: " + what + " works again")
	}
}

// moot notes that it is not tried any more, so that its trouble is over.
func (j *journal) moot(what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.broken, what)
}

// state notes what the consumer does.
func (j *journal) state(name string) {
	j.mu.Lock()
	j.now = name
	j.mu.Unlock()
}

// health is what the consumer does, or what keeps it from doing so.
func (j *journal) health() (state string, trouble []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for what := range j.broken {
		trouble = append(trouble, what)
	}
	return j.now, trouble
}

func (j *journal) lostLease(cid string, left int) {
	j.log.Warn("zq: lease lost", "claim", cid, "messages", left)
}

func (j *journal) deaf(id string) {
	j.log.Warn("zq: handler deaf to its context; its message is taken from it", "id", id)
}
