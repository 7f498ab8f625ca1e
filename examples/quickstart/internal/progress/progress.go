// Package progress shows how far a run is: a bar on a terminal, a few plain lines in a log.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Progress counts up to a total. It is safe for concurrent use. It starts no goroutine.
type Progress struct {
	mu    sync.Mutex
	done  int
	total int
	ended bool
	view  view
}

// view draws; it is called under the lock of its Progress. An error of drawing is nobody's business:
// the run matters, not its picture.
type view interface {
	show(done, total int)
	end(done, total int)
}

// New shows on w, with a bar if w is a terminal. A total of 0 or less is unknown, as of a stream.
func New(w io.Writer, label string, total int) *Progress {
	if isTerminal(w) {
		return &Progress{total: total, view: newBar(w, label, total)}
	}
	return &Progress{total: total, view: &lines{w: w, label: label}}
}

// Add counts n more. After Finish it does nothing.
func (p *Progress) Add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.done += n
	p.view.show(p.done, p.total)
}

// Finish ends the picture so that other output can follow on a line of its own. It says where the count
// stands, not that it is complete. A second call does nothing.
func (p *Progress) Finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.ended = true
	p.view.end(p.done, p.total)
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

type bar struct {
	w   io.Writer
	bar *progressbar.ProgressBar
}

func newBar(w io.Writer, label string, total int) *bar {
	if total <= 0 {
		total = -1 // how the library spells unknown
	}
	return &bar{w: w, bar: progressbar.NewOptions(total,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(label),
		progressbar.OptionShowCount(),
		progressbar.OptionSetWidth(30),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionThrottle(50*time.Millisecond), // drawing each event would slow the run that it shows
		// With an interval of 0 the spinner of an unknown total turns with the count, not with a goroutine.
		progressbar.OptionSetSpinnerChangeInterval(0),
	)}
}

func (b *bar) show(done, total int) {
	if total > 0 {
		done = min(done, total) // the library refuses to draw more than all
	}
	_ = b.bar.Set(done)
}

func (b *bar) end(int, int) {
	_ = b.bar.Exit() // leaves the bar where it stands
	_, _ = fmt.Fprintln(b.w)
}

// unknownStep is how many events a line stands for when the total is unknown.
const unknownStep = 1000

// lines writes a line each tenth of the total, by count, so that two runs write the same.
type lines struct {
	w     io.Writer
	label string
	shown int // tenths, or steps
	last  int // the count of the last line
}

func (l *lines) show(done, total int) {
	reached := done / unknownStep
	if total > 0 {
		reached = min(done, total) * 10 / total
	}
	if reached > l.shown {
		l.shown = reached
		l.write(done, total)
	}
}

func (l *lines) end(done, total int) {
	if done != l.last {
		l.write(done, total)
	}
}

func (l *lines) write(done, total int) {
	l.last = done
	if total > 0 {
		_, _ = fmt.Fprintf(l.w, "%s: %d of %d (%d %%)\n", l.label, done, total, done*100/total)
		return
	}
	_, _ = fmt.Fprintf(l.w, "%s: %d\n", l.label, done)
}
