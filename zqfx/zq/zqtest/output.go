package zqtest

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"sync"
)

// output keeps the lines of a child's stdout and hands them on one by one.
// The child never waits for a reader. It is safe for concurrent use.
type output struct {
	pipe    *os.File
	lines   chan string
	ended   chan struct{} // closed at the end of the pipe
	over    chan struct{} // closed when nobody takes lines any more
	workers sync.WaitGroup

	mu   sync.Mutex
	grew sync.Cond
	kept []string
	done bool
}

func readOutput(pipe *os.File) *output {
	o := &output{pipe: pipe, lines: make(chan string), ended: make(chan struct{}), over: make(chan struct{})}
	o.grew.L = &o.mu
	o.workers.Go(o.read) // ends with the pipe
	o.workers.Go(o.hand) // ends after the last line, or with over
	return o
}

func (o *output) all() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.kept)
}

// close stops reading and handing on, and waits for both.
func (o *output) close() {
	close(o.over)
	_ = o.pipe.Close()
	o.workers.Wait()
}

// read keeps line after line, a torn last one too.
func (o *output) read() {
	defer close(o.ended)
	r := bufio.NewReader(o.pipe)
	for {
		line, err := r.ReadString('\n')
		o.keep(line, err != nil)
		if err != nil {
			return
		}
	}
}

func (o *output) keep(line string, last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if line != "" {
		o.kept = append(o.kept, strings.TrimSuffix(line, "\n"))
	}
	o.done = last
	o.grew.Broadcast()
}

func (o *output) hand() {
	defer close(o.lines)
	for i := 0; ; i++ {
		line, more := o.await(i)
		if !more {
			return
		}
		select {
		case o.lines <- line:
		case <-o.over:
			return
		}
	}
}

// await gives line i when it is there; no more if the output ended before it.
func (o *output) await(i int) (string, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i == len(o.kept) && !o.done {
		o.grew.Wait()
	}
	if i == len(o.kept) {
		return "", false
	}
	return o.kept[i], true
}
