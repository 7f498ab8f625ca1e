// Command generate writes the export that the quickstart ships:
//
//	go run ./examples/quickstart/internal/generate > examples/quickstart/orders.jsonl
//
// It is deterministic: a fixed seed, no clock, whole numbers only (floats may differ between processors).
package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
)

// seed decides everything that is left to chance.
const seed = 20251128

func main() {
	out := bufio.NewWriter(os.Stdout)
	if err := export(out); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
	if err := out.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func export(w io.Writer) error {
	rng := rand.New(rand.NewPCG(seed, seed))
	history := trade(rng, customers(rng))
	markFlaky(history)
	markPoison(history)
	lines, err := encode(history)
	if err != nil {
		return err
	}
	for _, line := range damage(rng, retryPages(rng, lines)) {
		if _, err := io.WriteString(w, line+"\n"); err != nil {
			return err
		}
	}
	return nil
}
