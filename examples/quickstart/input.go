package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"

	"go.uber.org/fx"

	"github.com/zqueue/zqueue/examples/quickstart/internal/events"
)

//go:embed orders.jsonl
var shipped []byte

// input is where the events come from.
type input struct {
	r     io.Reader
	name  string
	lines int // 0 if unknown
}

// newInput opens a file at the start, not here: a constructor does nothing that must be undone.
func newInput(lc fx.Lifecycle, o options, std streams) *input {
	switch o.file {
	case "":
		n := bytes.Count(shipped, []byte("\n"))
		return &input{bytes.NewReader(shipped), fmt.Sprintf("a shop's export, %d lines, that ships with this example", n), n}
	case "-":
		return &input{std.in, "stdin", 0}
	}
	in := &input{name: o.file}
	var file *os.File
	lc.Append(fx.StartStopHook(
		func() (err error) {
			file, err = os.Open(o.file)
			in.r = file
			return err
		},
		func() { _ = file.Close() },
	))
	return in
}

// line is a line of the input: an event, or why it is none.
type line struct {
	event events.Event
	err   error
}

// read yields the lines until the input or ctx ends. Its goroutine may outlive ctx in a read of stdin, which
// nothing can interrupt; it ends with the program.
func (in *input) read(ctx context.Context) <-chan line {
	lines := make(chan line, batchSize)
	go func() {
		defer close(lines)
		for e, err := range events.Read(in.r) {
			select {
			case lines <- line{e, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}
