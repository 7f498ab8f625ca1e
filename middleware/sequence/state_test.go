package sequence

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zqueue/zqueue/zqfx/zq"
)

func TestNumbersAreWrittenInOneWay(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "007", "+7", "-0", " 7", "7 ", "7.0", "1e3", "0x7", "seven", "9223372036854775808", "٧"} {
		if n, err := parseNumber(text); err == nil {
			t.Errorf("%q was taken as %d", text, n)
		}
	}
	if n, err := parseNumber("9007199254740991"); err != nil || n != MaxNumber {
		t.Errorf("the highest number: %d, %v", n, err)
	}
}

func TestSkippedRangesAreBounded(t *testing.T) {
	t.Parallel()
	var r ranges
	for i := range int64(maxRanges + 50) {
		r = r.with(Range{From: 10 * i, To: 10*i + 3})
	}
	if len(r) != maxRanges || r[0].From != 0 || !r.has(495) || r.has(505) {
		t.Errorf("%d ranges, the first %v: want %d, of which the first holds all that were merged", len(r), r[0], maxRanges)
	}
	back, err := parseRanges(r.String())
	if err != nil || !cmp.Equal(back, r) {
		t.Errorf("read back: %v, %v", back, err)
	}
	for n, want := range map[int64]bool{1490: true, 1493: true, 1494: false, 1489: false, -1: false, math.MaxInt64: false} {
		if r.has(n) != want {
			t.Errorf("has(%d) = %t", n, !want)
		}
	}
}

func TestForeignStateIsRefused(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][]any{
		"too few":          {nil},
		"confirmed":        {"007", nil, nil, nil},
		"skipped":          {"7", "3", nil, nil},
		"skipped twice":    {"7", "1-2,2-3", nil, nil},
		"skipped reversed": {"7", "2-1", nil, nil},
		"waiting":          {"7", nil, "w 1 2", nil},
		"stage":            {"7", nil, nil, "x 1 2 0 0\nid"},
	} {
		if s, err := readState(values, 1); err == nil {
			t.Errorf("%s: read as %+v", name, s)
		} else if name != "too few" && !errors.Is(err, zq.ErrWrongType) {
			t.Errorf("%s: %v is no ErrWrongType", name, err)
		}
	}
}

func TestNothingStoredIsTheBeginning(t *testing.T) {
	t.Parallel()
	s, err := readState([]any{nil, nil, nil, nil}, 100)
	if err != nil || s.known || s.confirmed != 99 || s.own != nil || s.next != nil {
		t.Errorf("read as %+v, %v", s, err)
	}
}

func TestWhoWaitsIsReadBack(t *testing.T) {
	t.Parallel()
	w := &waiting{stage: stageLow, since: 1, at: 2, low: 3, base: 4, ids: []string{"a b", "order-ü", "x|y"}}
	got, err := readWaiting(w.String())
	if err != nil || !cmp.Equal(got, w, cmp.AllowUnexported(waiting{})) {
		t.Errorf("read back: %+v, %v", got, err)
	}
}

func FuzzStoredState(f *testing.F) {
	f.Add("7", "1-2,5-9", "w 1 2 0 0\nid")
	f.Add("", ",", "c 1 2 3 4")
	f.Add("9007199254740991", "-", "l -1 0 0 0\n\n")
	f.Fuzz(func(t *testing.T, n, skipped, own string) {
		s, err := readState([]any{n, skipped, own, nil}, 1)
		if err != nil {
			return
		}
		if got := itoa(s.confirmed); got != n {
			t.Errorf("confirmed %q read as %s", n, got)
		}
		if back, err := parseRanges(s.skipped.String()); err != nil || !cmp.Equal(back, s.skipped) {
			t.Errorf("skipped %q read as %v and again as %v, %v", skipped, s.skipped, back, err)
		}
		if back, err := readWaiting(s.own.String()); err != nil || back.String() != s.own.String() {
			t.Errorf("waiting %q read as %q and again as %v, %v", own, s.own, back, err)
		}
	})
}

func TestEveryWrongSettingIsTold(t *testing.T) {
	t.Parallel()
	_, err := New(nil, strings.Repeat("q", 129), First(-1), Limit(time.Millisecond), OnGap(7), MaxAhead(0),
		Keep(time.Millisecond), NumberOf(nil), nil)
	if !errors.Is(err, zq.ErrInvalid) {
		t.Fatalf("got %v", err)
	}
	for _, field := range []string{"redis", "queue", "First", "Limit", "OnGap", "MaxAhead", "Keep", "NumberOf"} {
		if !strings.Contains(err.Error(), "sequence."+field) && !strings.Contains(err.Error(), "sequence "+field) {
			t.Errorf("%s is not among %v", field, err)
		}
	}
}
