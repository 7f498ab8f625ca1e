package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"

	"github.com/zqueue/zqueue/examples/quickstart/internal/events"
)

//go:embed orders.jsonl
var shipped []byte

// input is where the events come from.
type input struct {
	r     io.Reader
	name  string
	lines int // 0 if unknown
	close func()
}

func openInput(file string, stdin io.Reader) (input, error) {
	nothing := func() {}
	switch file {
	case "":
		n := bytes.Count(shipped, []byte("\n"))
		return input{bytes.NewReader(shipped), fmt.Sprintf("a shop's export, %d lines, that ships with this example", n), n, nothing}, nil
	case "-":
		return input{stdin, "stdin", 0, nothing}, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return input{}, err
	}
	return input{f, file, 0, func() { _ = f.Close() }}, nil
}

// line is a line of the input: an event, or why it is none.
type line struct {
	event events.Event
	err   error
}

// read yields the lines until the input or ctx ends. Its goroutine may outlive ctx in a read of stdin, which
// nothing can interrupt; it ends with the program.
func (in input) read(ctx context.Context) <-chan line {
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
