package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

// Summary is the outcome of a run. When nothing was lost and nothing left over, Accepted = Processed + Skipped + Dead.
type Summary struct {
	Read           int // lines that are not blank
	Malformed      int
	MalformedLines []int // the first of them
	Duplicates     int   // the queue knew them
	Refused        int   // the queue did not take them
	Accepted       int   // distinct events that the queue took
	Customers      int

	Processed   int // done without a replay
	Skipped     int // done by an earlier run that the queue had not heard of
	Retried     int // events that needed more than one attempt
	ExtraRuns   int // all attempts but the first
	Dead        int // events that became dead letters, replayed or not
	DeadReasons []ReasonCount

	Replayed, ReplayedDone, ReplayedDead int

	OutOfOrder int // events that started before an earlier one of their customer was decided
	Lost       int // accepted events without an outcome
	Doubled    int // events that ran twice at once, or again after their outcome, or were accepted twice
	Left       int // events that an earlier run had left in the queue
	// Findings says more about the first violations, a line each.
	Findings []string

	Elapsed time.Duration // from the first event sent to the last outcome, replays apart
}

// ReasonCount is how many events died for one reason.
type ReasonCount struct {
	Reason string
	Count  int
}

// maxReasons bounds the table when every reason is another; what is beyond counts as otherReasons.
const (
	maxReasons   = 12
	otherReasons = "other reasons"
)

// PerSecond is the number of outcomes a second, 0 when there was no time to measure.
func (s Summary) PerSecond() float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return float64(s.Processed+s.Skipped+s.Dead) / s.Elapsed.Seconds()
}

// ExitStatus is 1 when an event was lost, doubled, out of order or refused, else 0.
// Malformed lines and dead letters are reported, but are no fault of the run.
func (s Summary) ExitStatus() int {
	if s.Lost+s.Doubled+s.OutOfOrder+s.Refused > 0 {
		return 1
	}
	return 0
}

// Table writes one row a number, aligned, and then the findings. Rows that only an unusual run has
// (refused, left over, skipped, replayed) are absent when zero.
func (s Summary) Table(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name string, n int, note string) {
		fmt.Fprintf(tw, "%s\t%7s\t%s\n", name, thousands(n), note)
	}
	maybe := func(name string, n int, note string) {
		if n > 0 {
			row(name, n, note)
		}
	}
	row("read", s.Read, "")
	row("malformed", s.Malformed, lineList(s.MalformedLines, s.Malformed))
	row("duplicates", s.Duplicates, "")
	maybe("refused", s.Refused, "")
	row("accepted", s.Accepted, "of "+thousands(s.Customers)+" customers")
	maybe("left over", s.Left, "from an earlier run")
	row("processed", s.Processed, "")
	maybe("skipped", s.Skipped, "done by an earlier run")
	row("retried", s.Retried, thousands(s.ExtraRuns)+" more attempts")
	row("dead", s.Dead, "")
	for _, r := range s.DeadReasons {
		fmt.Fprintf(tw, "  %s\t%7s\t\n", r.Reason, thousands(r.Count))
	}
	maybe("replayed", s.Replayed, fmt.Sprintf("%d processed, %d dead again", s.ReplayedDone, s.ReplayedDead))
	row("order violations", s.OutOfOrder, "")
	row("lost", s.Lost, "")
	row("doubled", s.Doubled, "")
	row("jobs/s", int(s.PerSecond()), "in "+s.Elapsed.Round(time.Millisecond).String())
	for _, f := range s.Findings {
		fmt.Fprintf(tw, "! %s\n", f)
	}
	return tw.Flush()
}

func (s *Summary) addReason(reason string) {
	reason = oneLine(reason, 60)
	for i := range s.DeadReasons {
		if s.DeadReasons[i].Reason == reason {
			s.DeadReasons[i].Count++
			return
		}
	}
	if len(s.DeadReasons) == maxReasons {
		s.addReason(otherReasons)
		return
	}
	if len(s.DeadReasons) == maxReasons-1 {
		reason = otherReasons
	}
	s.DeadReasons = append(s.DeadReasons, ReasonCount{Reason: reason, Count: 1})
}

// clone cuts the tie to the tally, which goes on counting.
func (s Summary) clone() Summary {
	s.MalformedLines = slices.Clone(s.MalformedLines)
	s.DeadReasons = slices.Clone(s.DeadReasons)
	return s
}

func lineList(lines []int, all int) string {
	if all == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("lines ")
	for i, n := range lines {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(n))
	}
	if all > len(lines) {
		b.WriteString(", …")
	}
	return b.String()
}

// thousands writes 12345 as 12,345.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// quote makes a name from a file safe for a terminal: escapes and direction marks are spelled out.
func quote(s string) string { return strconv.Quote(oneLine(s, 60)) }

// oneLine cuts s to limit bytes and keeps it from breaking the table's lines and columns.
func oneLine(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, s)
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}
