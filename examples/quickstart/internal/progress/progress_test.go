package progress

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
)

func TestLinesEachTenth(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		total, adds int
		want        string // first and last line, and how many
		lines       int
	}{
		{"full", 2000, 2000, "orders: 200 of 2000 (10 %)|orders: 2000 of 2000 (100 %)", 10},
		{"not a multiple of ten", 7, 7, "orders: 1 of 7 (14 %)|orders: 7 of 7 (100 %)", 7},
		{"stopped half way", 1000, 555, "orders: 100 of 1000 (10 %)|orders: 555 of 1000 (55 %)", 6},
		{"more than announced", 10, 12, "orders: 1 of 10 (10 %)|orders: 12 of 10 (120 %)", 11},
		{"unknown total", 0, 2500, "orders: 1000|orders: 2500", 3},
		{"nothing", 100, 0, "|", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			p := New(&out, "orders", tt.total)
			for range tt.adds {
				p.Add(1)
			}
			p.Finish()
			p.Finish()
			p.Add(1)
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			if have := lines[0] + "|" + lines[len(lines)-1]; have != tt.want && tt.adds > 0 {
				t.Errorf("have %q, want %q", have, tt.want)
			}
			if len(lines) != tt.lines {
				t.Errorf("%d lines, want %d: %q", len(lines), tt.lines, lines)
			}
		})
	}
}

func TestLinesOfOneBigStep(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := New(&out, "orders", 100)
	p.Add(95)
	p.Add(5)
	p.Finish()
	if want := "orders: 95 of 100 (95 %)\norders: 100 of 100 (100 %)\n"; out.String() != want {
		t.Errorf("have %q", out.String())
	}
}

func TestBar(t *testing.T) {
	t.Parallel()
	for total, want := range map[int]string{300: "(300/300)", 0: "orders"} {
		var out bytes.Buffer
		p := &Progress{total: total, view: newBar(&out, "orders", total)}
		for range 300 {
			p.Add(1)
		}
		p.Finish()
		if have := out.String(); !strings.Contains(have, want) {
			t.Errorf("total %d: no %q in %q", total, want, have)
		}
		if !strings.HasSuffix(out.String(), "\n") || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("total %d: the bar must end its line, once: %q", total, out.String())
		}
	}
}

func TestBarMayOvershoot(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := &Progress{total: 3, view: newBar(&out, "orders", 3)}
	p.Add(5)
	p.Finish()
	if !strings.Contains(out.String(), "(3/3)") {
		t.Errorf("have %q", out.String())
	}
}

func TestIsTerminal(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	if isTerminal(w) || isTerminal(io.Discard) {
		t.Error("a pipe or a buffer is no terminal")
	}
}

func TestProgressConcurrentSafe(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := New(&out, "orders", 1000)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for range 100 {
				p.Add(1)
			}
		})
	}
	wg.Wait()
	p.Finish()
	if have := strings.Count(out.String(), "\n"); have != 10 || !strings.HasSuffix(out.String(), "orders: 1000 of 1000 (100 %)\n") {
		t.Errorf("have %q", out.String())
	}
}
