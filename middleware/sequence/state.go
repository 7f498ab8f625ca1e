package sequence

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zqueue/zqueue/zqfx/zq"
)

// Names of the effect keys of an ordering key, and fields of its hash. They are a stored format: what is written
// today is read by later versions.
const (
	hashPrefix   = "seq:"  // hash: what is known of the key
	lowestPrefix = "seqw:" // sorted set: the numbers that wait, by number
	fieldLast    = "n"     // the last confirmed number
	fieldSkipped = "s"     // the skipped ranges, "4-4,10-12"
	fieldWaiting = "w:"    // and a number: who waits with that number, and since when
)

// errForeign says that a field is not ours. Nobody but an operator can change that.
var errForeign = fmt.Errorf("sequence: not a state that this library knows: %w", zq.ErrWrongType)

// state is what a message with one number needs to know of its key.
type state struct {
	confirmed int64
	known     bool // confirmed is stored; else it is the first number less one
	skipped   ranges
	own       *waiting // of the message's own number, nil if none is stored
	next      *waiting // of the number after it
}

// fields are those that readState takes, in its order.
func fields(n int64) []string {
	return []string{fieldLast, fieldSkipped, waitField(n), waitField(n + 1)}
}

func waitField(n int64) string { return fieldWaiting + strconv.FormatInt(n, 10) }

func readState(values []any, first int64) (state, error) {
	if len(values) != 4 {
		return state{}, fmt.Errorf("sequence: redis answered %d values, want 4", len(values))
	}
	var err error
	s := state{confirmed: first - 1}
	if text, ok := values[0].(string); ok {
		s.known = true
		if s.confirmed, err = parseNumber(text); err != nil {
			return state{}, fmt.Errorf("%w: confirmed number %.40q", errForeign, text)
		}
	}
	if text, ok := values[1].(string); ok {
		if s.skipped, err = parseRanges(text); err != nil {
			return state{}, err
		}
	}
	if s.own, err = readWaiting(values[2]); err != nil {
		return state{}, err
	}
	s.next, err = readWaiting(values[3])
	return s, err
}

// stage is what messages of one number wait for.
type stage string

const (
	stageWait stage = "w" // the predecessor, or its limit
	stageCall stage = "c" // what may be queued behind them, before the gap counts
	stageLow  stage = "l" // a lower number that waits too, and whose time is not over
)

// maxIDs bounds how many messages of one number are woken. Any others come back when their time is over.
const maxIDs = 16

// waiting is what is stored of the messages that wait with one number:
// "<stage> <since> <at> <low> <base>\n<id>\n<id>…", times in microseconds of the server's clock.
type waiting struct {
	stage stage
	since int64 // when the first of them came
	at    int64 // when the stage began
	// low is the lower number that they gave way to when their time was over, base what was confirmed then;
	// 0 and 0 if they have not.
	low, base int64
	ids       []string
}

func readWaiting(value any) (*waiting, error) {
	text, ok := value.(string)
	if !ok {
		return nil, nil //nolint:nilnil // nobody waits
	}
	head, ids, _ := strings.Cut(text, "\n")
	w := &waiting{}
	var st string
	n, err := fmt.Sscanf(head, "%s %d %d %d %d", &st, &w.since, &w.at, &w.low, &w.base)
	w.stage = stage(st)
	if err != nil || n != 5 || w.stage != stageWait && w.stage != stageCall && w.stage != stageLow {
		return nil, fmt.Errorf("%w: waiting %.40q", errForeign, head)
	}
	if ids != "" {
		w.ids = strings.Split(ids, "\n")
	}
	return w, nil
}

func (w *waiting) String() string {
	head := fmt.Sprintf("%s %d %d %d %d", w.stage, w.since, w.at, w.low, w.base)
	return strings.Join(append([]string{head}, w.ids...), "\n")
}

// due is when the stage is over.
func (w *waiting) due(c *config) time.Time {
	d := c.limit
	switch w.stage {
	case stageCall:
		d = c.call()
	case stageLow:
		d += 2 * c.call() // so that the lower number's own time is over by then
	}
	return time.UnixMicro(w.at).Add(d)
}
