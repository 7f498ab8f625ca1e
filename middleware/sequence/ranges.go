package sequence

import (
	"fmt"
	"strconv"
	"strings"
)

// Range is the numbers from From to To, both included.
type Range struct{ From, To int64 }

// maxRanges bounds how many skipped ranges a key remembers. Beyond it the two lowest become one, with what is
// between them: then a repeat of a number in between is a dead letter, where it could have been acked.
const maxRanges = 100

// ranges are disjoint and ascend.
type ranges []Range

func (r ranges) has(n int64) bool {
	for _, x := range r {
		if n >= x.From && n <= x.To {
			return true
		}
	}
	return false
}

// with adds a range above all others.
func (r ranges) with(x Range) ranges {
	all := make(ranges, 0, len(r)+1)
	all = append(append(all, r...), x)
	for len(all) > maxRanges {
		all[1].From = all[0].From
		all = all[1:]
	}
	return all
}

func (r ranges) String() string {
	parts := make([]string, len(r))
	for i, x := range r {
		parts[i] = strconv.FormatInt(x.From, 10) + "-" + strconv.FormatInt(x.To, 10)
	}
	return strings.Join(parts, ",")
}

func parseRanges(text string) (ranges, error) {
	if text == "" {
		return nil, nil
	}
	var all ranges
	for part := range strings.SplitSeq(text, ",") {
		from, to, ok := strings.Cut(part, "-")
		x := Range{}
		var err1, err2 error
		x.From, err1 = strconv.ParseInt(from, 10, 64)
		x.To, err2 = strconv.ParseInt(to, 10, 64)
		if !ok || err1 != nil || err2 != nil || x.From > x.To || len(all) > 0 && x.From <= all[len(all)-1].To {
			return nil, fmt.Errorf("%w: skipped ranges %.40q", errForeign, text)
		}
		all = append(all, x)
	}
	return all, nil
}
