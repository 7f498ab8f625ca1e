package member_test

import (
	"cmp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/zqueue/zqueue/zqfx/zq/internal/member"
)

const sequences = int64(1) << 53

// seeds are ids and keys that look like something else.
func seeds() [][2]string {
	return [][2]string{
		{"1", ""}, {"10", "k"}, {"a:b", "x:y"}, {":", ":"}, {"0006448000000000:1", "\x010006448000000000:1"},
		{"é", "\xff\xfe"}, {strings.Repeat("i", 256), strings.Repeat("k", 256)}, {"a", "\x01"}, {" ", " "},
	}
}

func validID(id string) bool {
	return id != "" && utf8.ValidString(id) && !strings.ContainsFunc(id, unicode.IsControl)
}

func validKey(key string) bool { return !strings.Contains(key, "\x00") }

// What is written reads back, and two messages never share a member.
func FuzzFormat(f *testing.F) {
	for i, a := range seeds() {
		for j, b := range seeds() {
			f.Add(int64(i)<<40, a[0], a[1], int64(j)<<40, b[0], b[1])
		}
	}
	f.Add(int64(0), "1", "", sequences-1, "1", "")
	f.Add(int64(9), "1", "2", int64(10), "1", "2")
	f.Fuzz(func(t *testing.T, seqA int64, idA, keyA string, seqB int64, idB, keyB string) {
		if !validID(idA) || !validID(idB) || !validKey(keyA) || !validKey(keyB) {
			t.Skip()
		}
		seqA, seqB = seqA&(sequences-1), seqB&(sequences-1)
		a, b := member.Format(seqA, idA, keyA), member.Format(seqB, idB, keyB)
		if got, want := member.Parse(a), (member.Member{Seq: seqA, ID: idA, Key: keyA}); got != want {
			t.Errorf("Parse(%q) = %+v, want %+v", a, got, want)
		}
		if same := seqA == seqB && idA == idB && keyA == keyB; same != (a == b) {
			t.Errorf("%d %q %q gives %q, %d %q %q gives %q", seqA, idA, keyA, a, seqB, idB, keyB, b)
		}
		if seqA != seqB && cmp.Compare(a, b) != cmp.Compare(seqA, seqB) {
			t.Errorf("%q and %q are not in the order of their sequences", a, b)
		}
		if _, ok := member.IsEntry(a); ok {
			t.Errorf("%q counts as the entry of a key", a)
		}
	})
}

// Whatever somebody puts there by ZADD can be read, and comes back as it is.
func FuzzParse(f *testing.F) {
	for _, pair := range seeds() {
		f.Add(pair[0])
		f.Add(pair[1])
		f.Add(member.Format(7, pair[0], pair[1]))
	}
	f.Add("")
	f.Add("\x01")
	f.Add("\x0100000000000001:")
	f.Add("\x01-0000000000001:x")
	f.Add("\x01+0000000000001:x")
	f.Add("\x01zzzzzzzzzzzzzz:x")
	f.Fuzz(func(t *testing.T, raw string) {
		got := member.Parse(raw)
		if got.Plain {
			if want := (member.Member{ID: raw, Plain: true}); got != want {
				t.Errorf("Parse(%q) = %+v, want %+v", raw, got, want)
			}
			return
		}
		if raw[0] != 1 || got.Seq < 0 || got.ID == "" && !strings.Contains(raw, ":\x00") {
			t.Errorf("Parse(%q) = %+v", raw, got)
		}
	})
}

// The entry of a key names that key, and nothing else does.
func FuzzEntry(f *testing.F) {
	for _, pair := range seeds() {
		f.Add(pair[1], pair[0])
	}
	f.Add("", "\x00")
	f.Add("\x00", "\x00\x00")
	f.Fuzz(func(t *testing.T, key, raw string) {
		got, ok := member.IsEntry(member.Entry(key))
		if ok != (key != "") || got != key {
			t.Errorf("IsEntry(Entry(%q)) = %q, %t", key, got, ok)
		}
		if name, ok := member.IsEntry(raw); ok && member.Entry(name) != raw {
			t.Errorf("IsEntry(%q) = %q, whose entry is %q", raw, name, member.Entry(name))
		}
	})
}
