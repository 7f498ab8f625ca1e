package zq

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/internal/keys"
	"github.com/zqueue/zqueue/zqfx/zq/internal/script"
)

// How many settle calls are under way at once, for different claims.
const settlers = 4

// unit is what one handler slot works off in a row: one message, or several of one key.
type unit struct {
	claim *claim
	key   string
	msgs  []script.Taken
	goOn  bool // whether the message that ran last lets the next one start
}

// session is one life of a consumer, from its start to the end of its drain.
//
// Goroutines, each waited for in drain: a claimer, Concurrency workers, settlers, a heart, a keeper,
// a sweeper, a sleeper that blocks for the wake-up marker.
type session struct {
	queue   string
	keys    keys.Keys
	scripts *script.Set
	handler Handler
	cfg     ConsumerConfig
	rules   rules
	rdb     redis.UniversalClient // its own, unless the application's is of an unknown type
	own     bool
	sleeper redis.UniversalClient // its own, for the one blocked call; nil where there is none
	count   *counters
	log     *journal
	seen    observers

	handlers context.Context // parent of all handlers' contexts
	kill     context.CancelCauseFunc
	io       context.Context // of Redis calls; ends when even the drain is over
	cut      context.CancelFunc
	stop     chan struct{} // closed when nothing more is to be claimed
	stopOnce sync.Once
	fatal    error // why the session stops by itself; set before stop is closed

	work          chan *unit
	dirty         chan *claim
	ending        sync.RWMutex  // held by whoever sends to dirty
	ended         bool          // last is closed; guarded by ending
	look          chan struct{} // something changed that lets the claimer claim more
	sleepy, woken chan struct{} // to and from the sleeper
	rouseKey      string        // a marker for this consumer alone
	awake         chan struct{} // closed when the sleeper has ended
	idling        atomic.Bool   // the claimer waits for a marker
	full          atomic.Bool   // the claimer waits for room
	held          claims
	load          load
	slots         []*slot
	tokens        tokens

	suspect atomic.Bool // a suspect is in hand; claim no other
	doubt   chan string // a claim id whose reply never came; room for one

	calm chan struct{} // closed when nobody may be taken a message from any more
	last chan struct{} // closed when no outcome is decided any more

	claimer, workers, settling, beating, sweeping sync.WaitGroup
}

func (s *session) stopping() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// end stops claiming; err, if any, is why the session ends by itself.
func (s *session) end(err error) {
	s.stopOnce.Do(func() {
		s.fatal = err
		close(s.stop)
	})
}

// endSettling lets the settlers end after what they have. Outcomes that are decided later are refused.
func (s *session) endSettling() {
	s.ending.Lock()
	defer s.ending.Unlock()
	s.ended = true
	close(s.last)
}

// finished forgets a claim that has nothing left to record.
func (s *session) finished(c *claim) {
	s.held.remove(c)
	c.cancel(nil)
	if c.alone {
		s.suspect.Store(false)
		s.nudge()
	}
}

// nudge lets the claimer look again.
func (s *session) nudge() {
	select {
	case s.look <- struct{}{}:
	default:
	}
}

// start brings all goroutines up.
func (s *session) start() {
	s.workers.Add(len(s.slots))
	for _, sl := range s.slots {
		go s.worker(sl)
	}
	for range settlers {
		s.settling.Go(s.settler)
	}
	s.claimer.Go(s.claimLoop)
	s.claimer.Go(s.sleepLoop)
	s.beating.Go(s.heart)
	s.beating.Go(s.keeper)
	s.sweeping.Go(s.sweep)
}
