package zqtest

type progress int

const (
	absent  progress = iota // not enqueued yet
	waiting                 // to run, or to run again
	running
	finished // decided; a crash may undo that
	final    // decided and recorded
)

func (p progress) String() string {
	return [...]string{"absent", "waiting", "running", "decided", "recorded"}[p]
}

// turn is one message on its way through the history.
type turn struct {
	Event // its first Enqueued
	lane  *turns
	rank  int // index in lane.all

	state    progress
	skipped  bool
	enqueued int // event of its newest enqueue or replay
	claimed  int // event of its newest claim, -1 after the start that used it
	started  int // event of its newest start, -1 before the first
	cut      int // at that start: what was enqueued later could not go first
	worker   string
}

// open reports whether later messages have to wait for this one.
func (t *turn) open() bool { return (t.state == waiting || t.state == running) && !t.skipped }

// turns are the messages of one key in the order they should run.
type turns struct {
	all   []*turn
	head  int // none below is open
	floor int // none below is finished
}

// arrive puts the message to the waiting ones.
func (t *turn) arrive(i int) {
	t.enqueued, t.skipped = i, false
	t.set(waiting)
}

// end takes the outcome of a run, if it comes from the right worker.
func (t *turn) end(i int, e Event) {
	current := e.Worker == t.worker && t.state == running
	switch {
	case e.Op == Succeeded && current:
		t.set(finished)
	case (e.Op == Failed || e.Op == Postponed) && current:
		t.set(waiting)
	case e.Op == Dead && t.state != final && (e.Worker == "" || e.Worker == t.worker):
		t.set(finished)
	case e.Op == Cancelled:
		t.set(final)
	case e.Op == Acked:
		t.set(final)
		t.settleBelow(i)
	}
}

func (t *turn) set(p progress) {
	t.state = p
	if t.open() {
		t.lane.head = min(t.lane.head, t.rank)
	}
	if p == finished {
		t.lane.floor = min(t.lane.floor, t.rank)
	}
}

// blocker is the first message that should have been decided before this one
// started, if there is one.
func (t *turn) blocker() *turn {
	if t.skipped {
		return nil
	}
	lane := t.lane
	for lane.head < len(lane.all) && !lane.all[lane.head].open() {
		lane.head++
	}
	for _, other := range lane.all[min(lane.head, t.rank):t.rank] {
		if other.open() && other.enqueued < t.cut {
			return other
		}
	}
	return nil
}

// settleBelow takes earlier messages as recorded that were decided, and not
// started again since the given event.
func (t *turn) settleBelow(since int) {
	lane := t.lane
	lowest := t.rank
	for _, other := range lane.all[min(lane.floor, t.rank):t.rank] {
		switch {
		case other.state != finished || other.skipped:
		case other.enqueued < t.cut && other.started < since:
			other.state = final
		default:
			lowest = min(lowest, other.rank)
		}
	}
	lane.floor = max(lane.floor, lowest)
}
